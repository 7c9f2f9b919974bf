//! Documents name files and tests; this fails if one of them does not exist any more.

use std::collections::HashSet;
use std::path::Path;

use super::sources::{Text, Tree};

/// The words between backquotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Finds the sources that a line names by a path or by the end of one.
fn sources(line: &str) -> impl Iterator<Item = &str> {
    quoted(line).filter(|word| word.contains('/') && word.ends_with(".rs") && !word.contains('*'))
}

/// The tests that a line names: names of five words or more. In a row of a table, the last cell
/// names tests; the others may name functions of other programs.
fn tests(line: &str) -> impl Iterator<Item = &str> {
    let cell = line.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
    quoted(cell).filter(|word| word.matches('_').count() >= 4 && is_identifier(word))
}

fn tests_of(text: &Text) -> impl Iterator<Item = &str> {
    let lines = text.text.lines().flat_map(tests);
    lines.filter(|name| !name.starts_with("comity_"))
}

fn is_identifier(word: &str) -> bool {
    word.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// The names of the functions in a source, including those in macros.
fn functions(source: &Text) -> impl Iterator<Item = &str> {
    let after = source.text.split("fn ").skip(1);
    after.filter_map(|rest| rest.split(['(', '<']).next())
}

fn is_rust(text: &&Text) -> bool {
    text.path.ends_with(".rs")
}

/// Returns whether a document is in the top folder of the checkout or in `docs`.
fn is_document(text: &&Text) -> bool {
    text.path.ends_with(".md")
        && text.path.strip_prefix("docs/").unwrap_or(&text.path).find('/').is_none()
}

#[test]
fn sources_that_documents_name_exist() {
    let tree = Tree::load(&crate::root()).unwrap();
    let is_there = |name: &str| {
        tree.texts.iter().filter(is_rust).any(|source| Path::new(&source.path).ends_with(name))
    };
    let named = |text: &Text| {
        let names = text.text.lines().flat_map(sources).filter(|name| !is_there(name));
        names.map(|name| format!("{}: {name}", text.path)).collect::<Vec<_>>()
    };
    let documents: Vec<_> = tree.texts.iter().filter(is_document).collect();
    assert!(documents.len() > 5, "{} documents", documents.len());
    let lost: Vec<String> = documents.into_iter().flat_map(named).collect();
    assert!(lost.is_empty(), "documents name files that do not exist:\n{}", lost.join("\n"));
}

#[test]
fn tests_that_documents_name_exist() {
    let tree = Tree::load(&crate::root()).unwrap();
    let names: HashSet<&str> = tree.texts.iter().filter(is_rust).flat_map(functions).collect();
    let named = |text: &Text| {
        let names = tests_of(text).filter(|name| !names.contains(*name));
        names.map(|name| format!("{}: {name}", text.path)).collect::<Vec<_>>()
    };
    let documents: Vec<_> = tree.texts.iter().filter(is_document).collect();
    assert!(documents.iter().any(|text| tests_of(text).count() > 100), "docs/pitfalls.md");
    let lost: Vec<String> = documents.into_iter().flat_map(named).collect();
    assert!(lost.is_empty(), "documents name tests that do not exist:\n{}", lost.join("\n"));
}

#[test]
fn names_are_found_in_a_row() {
    let row = "| a | `b_c_d_e_f` | `crates/a/b.rs`: `a_test_of_all_of_it`, `fuzz` |";
    assert_eq!(sources(row).collect::<Vec<_>>(), ["crates/a/b.rs"]);
    assert_eq!(tests(row).collect::<Vec<_>>(), ["a_test_of_all_of_it"]);
}
