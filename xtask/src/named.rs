//! Documents name files and tests. A name of one that is no more fails here.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The words between backquotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Sources that a line names by a path, or by the end of one.
fn sources(line: &str) -> impl Iterator<Item = &str> {
    quoted(line).filter(|word| word.contains('/') && word.ends_with(".rs") && !word.contains('*'))
}

/// Tests that the last cell of a row of docs/pitfalls.md names: sentences of four words and more.
fn tests(row: &str) -> impl Iterator<Item = &str> {
    let cell = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
    quoted(cell).filter(|word| word.matches('_').count() >= 3 && is_identifier(word))
}

fn is_identifier(word: &str) -> bool {
    word.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// The Rust sources below `dir`.
fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(dir).filter(|path| !path.ends_with("target")) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

fn all_rust_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    ["crates", "xtask", "fuzz"].iter().for_each(|dir| rust_files(&root.join(dir), &mut found));
    found
}

/// The names of the functions in a source.
fn functions(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let after = text.split("fn ").skip(1);
    after.map(|rest| rest.split(['(', '<']).next().unwrap().to_owned()).collect()
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path())
}

#[test]
fn sources_that_documents_name_exist() {
    let root = crate::root();
    let files = all_rust_files(&root);
    let documents = entries(&root).chain(entries(&root.join("docs")));
    let mut lost = Vec::new();
    for document in documents.filter(|path| path.extension().is_some_and(|kind| kind == "md")) {
        let text = std::fs::read_to_string(&document).unwrap();
        let named = text.lines().flat_map(sources);
        let is_lost = |name: &&str| !files.iter().any(|file| file.ends_with(name));
        lost.extend(named.filter(is_lost).map(|name| format!("{}: {name}", document.display())));
    }
    assert!(lost.is_empty(), "documents name what is no more:\n{}", lost.join("\n"));
}

#[test]
fn tests_that_the_pitfalls_name_exist() {
    let root = crate::root();
    let names: HashSet<String> =
        all_rust_files(&root).iter().flat_map(|path| functions(path)).collect();
    let text = std::fs::read_to_string(root.join("docs/pitfalls.md")).unwrap();
    let named = text.lines().filter(|line| line.starts_with('|')).flat_map(tests);
    let lost: Vec<&str> = named.filter(|name| !names.contains(*name)).collect();
    assert!(lost.is_empty(), "docs/pitfalls.md names tests that are no more:\n{}", lost.join("\n"));
}

#[test]
fn names_are_found_in_a_row() {
    let row = "| a | `b_c_d_e` | `crates/a/b.rs`: `a_test_of_it`, `fuzz` |";
    assert_eq!(sources(row).collect::<Vec<_>>(), ["crates/a/b.rs"]);
    assert_eq!(tests(row).collect::<Vec<_>>(), ["a_test_of_it"]);
}
