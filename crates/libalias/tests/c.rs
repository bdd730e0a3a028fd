//! The C interface, used by C: the program in `tests/c` is compiled by the
//! system's compiler against header and libraries, and run as it is, under
//! valgrind and with the address sanitizer.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What a static library of Rust wants beside itself.
const SYSTEM: &[&str] = &["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lc"];
const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];
const SONAME: &str = "libalias.so.7";

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where Cargo has put the libraries: beside the test program itself.
fn libraries() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(here().join("tests/c")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut sources: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    sources
}

/// A directory with the shared library under the names it is installed by.
fn shared() -> TempDir {
    let directory = TempDir::new().unwrap();
    let library = libraries().join("libalias.so");
    symlink(&library, directory.path().join("libalias.so")).unwrap();
    symlink(&library, directory.path().join(SONAME)).unwrap();
    directory
}

/// Runs a program to its end; what it said, when it went well.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}:\n{said}");
    said
}

fn compile(program: &Path, flags: &[&str], libraries: &[OsString]) {
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-D_DEFAULT_SOURCE", "-g", "-O1"])
        .args(WARNINGS)
        .args(flags)
        .arg("-I")
        .arg(here().join("include"))
        .args(sources())
        .arg("-o")
        .arg(program)
        .args(libraries)
        .arg("-lpthread");
    run(&mut compiler);
}

/// The program, linked with the shared library in `directory`.
fn with_shared(directory: &Path, flags: &[&str]) -> PathBuf {
    let program = directory.join("cases");
    let mut search = OsString::from("-L");
    search.push(directory);
    let mut runtime = OsString::from("-Wl,-rpath,");
    runtime.push(directory);
    compile(&program, flags, &[search, runtime, "-lalias".into()]);
    program
}

fn assert_all_well(said: &str) {
    let end = said.lines().rfind(|line| line.ends_with(" failed"));
    let end = end.unwrap_or_default();
    assert!(end.ends_with(" cases, 0 failed"), "{said}");
    assert!(!said.contains("not ok"), "{said}");
}

#[test]
fn every_case_with_the_shared_library() {
    let directory = shared();
    let program = with_shared(directory.path(), &[]);
    assert_all_well(&run(&mut Command::new(&program)));
    // It is found by its soname, as one that is installed.
    let needed = run(Command::new("readelf").arg("-d").arg(&program));
    assert!(needed.contains("[libalias.so.7]"), "{needed}");
}

#[test]
fn every_case_with_the_static_library() {
    let directory = TempDir::new().unwrap();
    let program = directory.path().join("cases");
    let mut linked = vec![libraries().join("libalias.a").into_os_string()];
    linked.extend(SYSTEM.iter().map(OsString::from));
    compile(&program, &[], &linked);
    assert_all_well(&run(&mut Command::new(&program)));
}

#[test]
fn valgrind_finds_nothing() {
    let directory = shared();
    let program = with_shared(directory.path(), &[]);
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .args(["--errors-for-leak-kinds=definite", "--fair-sched=yes"])
        .arg(&program);
    assert_all_well(&run(&mut valgrind));
}

#[test]
fn the_address_sanitizer_finds_nothing() {
    let directory = shared();
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = with_shared(directory.path(), &flags);
    assert_all_well(&run(&mut Command::new(&program)));
}

/// Nothing but the interface is seen from outside, and all of it is.
#[test]
fn the_library_exports_what_the_header_declares() {
    let read = |name: &str| fs::read_to_string(here().join("include").join(name)).unwrap();
    let header = ["alias.h", "alias_mod.h"].map(read).concat();
    let functions = header.match_indices('(').filter_map(|(at, _)| {
        let before = header.get(..at)?;
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
        name.starts_with("LibAlias").then_some(name)
    });
    let mut declared: Vec<&str> = functions.collect();
    declared.sort_unstable();
    declared.dedup();
    assert!(declared.len() > 30, "{declared:?}");
    let library = libraries().join("libalias.so");
    let symbols = run(Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=just-symbols"])
        .arg(library));
    let mut exported: Vec<&str> = symbols.lines().collect();
    exported.sort_unstable();
    assert_eq!(exported, declared);
}

/// The header is C of any age, and C++.
#[test]
fn the_header_stands_alone() {
    let directory = TempDir::new().unwrap();
    let source = directory.path().join("header.c");
    fs::write(&source, "#include <alias_mod.h>\n#include <alias.h>\n").unwrap();
    let compilers = [
        ("cc", "c", "-std=gnu89"),
        ("cc", "c", "-std=c99"),
        ("cc", "c", "-std=gnu17"),
        ("c++", "c++", "-std=c++11"),
    ];
    for (compiler, language, standard) in compilers {
        let mut command = Command::new(compiler);
        command
            .args(["-x", language, standard, "-D_DEFAULT_SOURCE"])
            .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .arg(here().join("include"))
            .arg(&source);
        run(&mut command);
    }
}
