//! `cargo xtask xdp`: makes the instructions of the program that forwards at
//! XDP from its source in C, with clang. They are kept in the repository, so
//! that nobody else needs clang; `--check` compares them, and so does a test
//! where the clang is there that made them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::host::{self, Needed, say};

/// What makes it: Debian 12's.
const NEEDED: &[Needed] = &[
    ("clang", "clang"),
    ("/usr/include/linux/bpf.h", "linux-libc-dev"),
];
/// Where it is.
const SOURCE: &str = "crates/dataplane/src/xdp/forward.c";
const MADE: &str = "crates/dataplane/src/xdp/instructions.rs";
/// The section of the object file that it is in.
const SECTION: &str = "xdp";
/// Instructions in a line.
const A_LINE: usize = 4;
/// How the line begins that says who made it.
const BY: &str = "// Made by ";

/// Makes the program anew.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only compares it with what is there
    #[arg(long)]
    check: bool,
}

/// Makes it, or compares it.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    host::install_missing(NEEDED)?;
    let root = host::workspace()?;
    let made = make(&root)?;
    let place = root.join(MADE);
    if !arguments.check {
        fs::write(&place, made).with_context(|| format!("writing {MADE}"))?;
        say(format_args!("{MADE} is made of {SOURCE}"));
        return Ok(ExitCode::SUCCESS);
    }
    let kept = fs::read_to_string(&place).with_context(|| format!("reading {MADE}"))?;
    if kept == made {
        return Ok(ExitCode::SUCCESS);
    }
    match (maker(&kept), maker(&made)) {
        (kept, made) if kept != made => bail!("{MADE} was made by {kept:?}, here is {made:?}"),
        _ => bail!("{MADE} is not what comes of {SOURCE}: run `cargo xtask xdp`"),
    }
}

fn maker(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix(BY))
}

/// The file that comes of the source.
fn make(root: &Path) -> Result<String> {
    let version = version()?;
    let directory = std::env::temp_dir().join(format!("fingerpost-xdp-{}", std::process::id()));
    fs::create_dir_all(&directory).context("making a directory")?;
    let object = directory.join("forward.o");
    let compiled = compile(&root.join(SOURCE), &object);
    let object = compiled.and_then(|()| fs::read(&object).context("reading what clang made"));
    let _ = fs::remove_dir_all(&directory);
    let object = object?;
    ensure!(
        section(&object, ".relxdp")?.is_none(),
        "{SOURCE} refers to something that only a linker could find"
    );
    let code = section(&object, SECTION)?.context("clang made no section of that name")?;
    Ok(written(code, &version))
}

fn version() -> Result<String> {
    let output = Command::new("clang").arg("--version").output();
    let output = output.context("starting clang")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn compile(source: &Path, object: &Path) -> Result<()> {
    // Types of the processor are in a directory of its own on Debian.
    let include = PathBuf::from(format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH));
    let status = Command::new("clang")
        .args([
            "-target", "bpfel", "-mcpu=v3", "-O2", "-Wall", "-Werror", "-I",
        ])
        .arg(include)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status()
        .context("starting clang")?;
    ensure!(status.success(), "clang does not compile {SOURCE}");
    Ok(())
}

/// The instructions as a file of Rust.
fn written(code: &[u8], version: &str) -> String {
    let mut text = format!(
        "//! The program of `forward.c`, as `cargo xtask xdp` makes it: not changed by\n\
         //! hand. Called by `program`.\n\n\
         {BY}{version}\n\n\
         /// `struct bpf_insn`, each as a number of the byte order of small ends.\n\
         #[rustfmt::skip]\n\
         pub const INSTRUCTIONS: &[u64] = &[\n"
    );
    for line in code.chunks(8 * A_LINE) {
        let mut numbers = Vec::with_capacity(A_LINE);
        for instruction in line.chunks_exact(8) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(instruction);
            let number = u64::from_le_bytes(bytes);
            let parts = [number >> 48, number >> 32, number >> 16, number];
            let [a, b, c, d] = parts.map(|part| part & 0xffff);
            numbers.push(format!("0x{a:04x}_{b:04x}_{c:04x}_{d:04x},"));
        }
        text.push_str(&format!("    {}\n", numbers.join(" ")));
    }
    text.push_str("];\n");
    text
}

/// A section of an object file of 64 bits (ELF, little-endian) by its name.
fn section<'a>(object: &'a [u8], name: &str) -> Result<Option<&'a [u8]>> {
    ensure!(
        object.starts_with(b"\x7fELF\x02\x01"),
        "clang made no object file"
    );
    let table = number(object, 0x28, 8)?;
    let entry = number(object, 0x3a, 2)?;
    let names = header(object, table + entry * number(object, 0x3e, 2)?)?.1;
    for place in 0..number(object, 0x3c, 2)? {
        let (at, bytes) = header(object, table + entry * place)?;
        let rest = names.get(at..).unwrap_or_default();
        let found = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        if found == name.as_bytes() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Where the name of a section stands, and its bytes.
fn header(object: &[u8], at: usize) -> Result<(usize, &[u8])> {
    let (offset, len) = (number(object, at + 0x18, 8)?, number(object, at + 0x20, 8)?);
    let bytes = object.get(offset..offset + len).unwrap_or_default();
    Ok((number(object, at, 4)?, bytes))
}

fn number(bytes: &[u8], at: usize, len: usize) -> Result<usize> {
    let part = bytes
        .get(at..at + len)
        .context("the object file is cut off")?;
    let number = part
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    usize::try_from(number).context("a number of the object file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_comes_of_the_source() {
        let root = host::workspace().unwrap();
        let kept = fs::read_to_string(root.join(MADE)).unwrap();
        let by = maker(&kept).unwrap();
        match version() {
            Ok(version) if version == by => assert_eq!(make(&root).unwrap(), kept),
            Ok(version) => ::lab::skip::skip(&format!("here is {version}, it was made by {by}")),
            Err(_) => ::lab::skip::skip(&format!("no clang is here; it was made by {by}")),
        }
    }

    #[test]
    fn instructions_are_written_one_a_line() {
        let text = written(&[0xb7, 0, 0, 0, 1, 0, 0, 0], "clang 1");
        assert!(
            text.ends_with("&[\n    0x0000_0001_0000_00b7,\n];\n"),
            "{text}"
        );
        assert_eq!(maker(&text), Some("clang 1"));
        assert!(section(b"no object", "xdp").is_err());
    }
}
