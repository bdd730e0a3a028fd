use super::*;

/// What is found in a crate of these files below `src`.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let paths: Vec<String> = files
        .iter()
        .map(|(path, _)| format!("src/{path}"))
        .collect();
    let files: Vec<(&str, &str)> = paths
        .iter()
        .zip(files)
        .map(|(path, (_, text))| (path.as_str(), *text))
        .collect();
    let found = check(&Tree::of(&files));
    let line = |finding: Finding| format!("{}:{}: {}", finding.path, finding.line, finding.what);
    found.into_iter().map(line).collect()
}

/// The only circle of a crate, as it is told.
fn circle(files: &[(&str, &str)]) -> String {
    let found = findings(files);
    let [found] = found.as_slice() else {
        panic!("{found:?}");
    };
    let circle = found.split("folder: ").nth(1).unwrap();
    circle.split(" (").next().unwrap().to_owned()
}

#[test]
fn a_circle_over_a_folder_s_edge_is_named_with_its_lines() {
    let files = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "mod inner;\npub struct A;\n"),
        ("a/inner.rs", "\nuse crate::b::B;"),
        ("b.rs", "\n\nuse crate::a::A;\npub struct B(A);"),
    ];
    assert_eq!(findings(&files), Vec::<String>::new());
    let back = "mod inner;\nuse inner::X;\npub struct A;\n";
    let files = [
        files[0],
        ("a.rs", back),
        ("a/inner.rs", "pub struct X;\nuse crate::b::B;"),
        files[3],
    ];
    assert_eq!(
        circle(&files),
        "src/a/inner.rs:2 → src/b.rs:3 → src/a.rs:2 → src/a/inner.rs"
    );
}

#[test]
fn a_parent_may_re_export_what_its_children_have() {
    let files = [
        (
            "lib.rs",
            "mod a;\nmod b;\npub use a::{A, inner::*};\npub use b::B;",
        ),
        (
            "a.rs",
            "pub mod inner;\npub use inner::Inner;\npub struct A;",
        ),
        ("a/inner.rs", "use crate::B;\npub struct Inner(B);"),
        // By the root and by the parent: it stands in `a/inner.rs`.
        ("b.rs", "pub struct B;"),
    ];
    assert_eq!(findings(&files), Vec::<String>::new());
    for inner in ["crate::Inner", "crate::a::Inner", "crate::a::inner::Inner"] {
        let text = format!("use {inner};\npub struct B(Inner);");
        let files = [files[0], files[1], files[2], ("b.rs", &text)];
        assert_eq!(
            circle(&files),
            "src/a/inner.rs:1 → src/b.rs:1 → src/a/inner.rs",
            "{inner}"
        );
    }
}

#[test]
fn files_of_one_folder_may_lean_on_each_other() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b;\nmod c;\nuse b::B;\npub struct A;"),
        ("a/b.rs", "use super::{A, c::C};\npub struct B;"),
        ("a/c.rs", "pub struct C(super::b::B);"),
    ];
    assert_eq!(findings(&files), Vec::<String>::new());
}

#[test]
fn a_grandchild_and_its_grandparent_are_two_folders() {
    let grandchild = |path: &str| {
        circle(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b;\npub struct A;\nfn f() { b::c::g(); }"),
            ("a/b.rs", "pub mod c;"),
            ("a/b/c.rs", &format!("pub fn g() {{\n  let a = {path};\n}}")),
        ])
    };
    let expected = "src/a.rs:3 → src/a/b/c.rs:2 → src/a.rs";
    for path in ["super::super::A", "crate::a::A", "self::super::super::A"] {
        assert_eq!(grandchild(path), expected);
    }
}

#[test]
fn groups_names_and_paths_within_macros_are_read() {
    let from_b = |text: &str| {
        circle(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "pub mod inner;"),
            ("a/inner.rs", "pub fn f() { crate::b::g() }"),
            ("b.rs", text),
        ])
    };
    for (line, text) in [
        (
            1,
            "use crate::{a::{inner::{self, f as h}}};\npub fn g() { h() }",
        ),
        (
            2,
            "use crate::a::inner as other;\npub fn g() { other::f() }",
        ),
        (
            2,
            "use crate::a;\npub fn g() { say!(\"{}\", a::inner::f()) }",
        ),
        (1, "pub fn g() { crate::a::inner::made_by_a_macro() }"),
        (
            2,
            "pub mod deep {\n  use super::super::a::inner::f;\n}\npub fn g() {}",
        ),
        (1, "use crate::a::inner::*;\npub fn g() {}"),
    ] {
        let expected = format!("src/a/inner.rs:1 → src/b.rs:{line} → src/a/inner.rs");
        assert_eq!(from_b(text), expected, "{text}");
    }
}

#[test]
fn what_leads_nowhere_is_no_arrow() {
    for text in [
        // For tests alone.
        "pub fn g() {}\n#[cfg(test)]\nmod tests { use crate::a::inner::f; }",
        "pub fn g() {}\n#[cfg(test)]\nmod tests;",
        "pub fn g() {}\n#[cfg(test)]\nuse crate::a::inner::f;",
        "pub fn g() {}\n#[cfg(test)]\nimpl X { fn of() { crate::a::inner::f() } }",
        // A crate's name, a module alone, a comment, a string, a visibility.
        "use inner::f;\nuse f::f;\npub fn g() { f() }",
        "use crate::a::inner;\npub fn g() {}",
        "/// See [`crate::a::inner::f`].\npub fn g() { h(\"crate::a::inner::f\") }",
        "pub(in crate::a) fn h() {}\npub fn g() {}",
    ] {
        let files = [
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "pub mod inner;"),
            ("a/inner.rs", "pub fn f() { crate::b::g() }"),
            ("b.rs", text),
            ("b/tests.rs", "use crate::a::inner::f;"),
        ];
        assert_eq!(findings(&files), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn imports_in_a_circle_end() {
    let files = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "pub use crate::b::X;\npub use crate::b::*;"),
        ("b.rs", "pub use crate::a::X;\npub use crate::a::*;"),
    ];
    assert_eq!(findings(&files), Vec::<String>::new());
}

#[test]
fn each_group_is_a_finding_and_a_crate_s_root_lies_in_its_folder() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nuse a::c::C;\npub struct Root;"),
        ("a.rs", "pub mod c;"),
        ("a/c.rs", "use crate::Root;\npub struct C(Root);"),
        ("b.rs", "mod d;\npub mod e;\nuse d::f;\npub struct B;"),
        ("b/d.rs", "pub mod f;\nuse super::B;"),
        ("b/d/f.rs", "use crate::b::B;\npub fn f() {}"),
        ("b/e.rs", ""),
    ];
    let found = findings(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = "mod d;\npub mod e;\nuse d::f::f;\npub struct B;";
    let files = [
        files[0],
        files[1],
        files[2],
        ("b.rs", text),
        files[4],
        files[5],
        files[6],
    ];
    assert_eq!(findings(&files).len(), 2);
}

#[test]
fn a_file_that_is_not_rust_is_found() {
    let found = findings(&[("lib.rs", "mod a;"), ("a.rs", "\nfn f( {}")]);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("src/a.rs:"), "{found:?}");
}
