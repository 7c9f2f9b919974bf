//! Rules about lines: columns, ASCII, leftovers, and words and paths that must not be in the tree.

use super::Finding;
use super::sources::{Text, Tree};

/// Most columns of a line of source.
const COLUMNS_MAX: usize = 100;

/// Reminders that must not remain; each is in two halves, so that this table is not one of them.
const LEFTOVERS: &[(&str, &str)] = &[
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("to", "do!"),
    ("unimple", "mented!"),
    ("db", "g!"),
];

/// Folders of one machine; no text may depend on the place of the checkout.
const FOREIGN: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/."), ("/home/us", "er/")];

/// Words about the origin of a text instead of its content.
const WORDS: &[(&str, &str)] = &[("ai ass", "istant"), ("language ", "model")];

/// Languages of text in documentation that is not Rust.
const QUOTED: &[&str] = &["text", "toml", "sh"];

/// The only source of packages, as Cargo.lock names it.
const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every line against the rules.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for text in &tree.texts {
        for (number, line) in (1..).zip(text.text.lines()) {
            let wrong = wrong_with(text, line);
            let at = (text.path.as_str(), number);
            findings.extend(wrong.map(|(what, remedy)| Finding::new(at, what, remedy)));
        }
    }
    for source in &tree.sources {
        let what = "an example that `cargo xtask test` does not run";
        let lines = examples(&source.text).into_iter().map(|number| (&*source.path, number));
        findings.extend(lines.map(|at| Finding::new(at, what, "write ```text, or a test")));
    }
}

/// The faults of a line, each with its remedy.
fn wrong_with(text: &Text, line: &str) -> impl Iterator<Item = (String, &'static str)> {
    let mut wrong = Vec::new();
    if is_source(&text.path) {
        source_line(line, &mut wrong);
    }
    let lower = line.to_lowercase();
    if let Some(word) = joined(WORDS).find(|word| is_word_in(&lower, word)) {
        wrong.push((format!("`{word}`"), "say what holds, not who wrote it"));
    }
    if let Some(path) = joined(FOREIGN).find(|path| is_path_in(line, path)) {
        wrong.push((format!("a path of one machine, `{path}`"), "use a path of the checkout"));
    }
    if is_foreign_registry(&text.path, line) {
        wrong.push(("a package registry of one machine".into(), "take packages from crates.io"));
    }
    wrong.into_iter()
}

fn source_line(line: &str, wrong: &mut Vec<(String, &'static str)>) {
    let columns = line.chars().count();
    if columns > COLUMNS_MAX {
        wrong.push((format!("{columns} columns"), "break the line at 100"));
    }
    if !line.is_ascii() {
        wrong.push(("a character that is not ASCII".into(), "write it in ASCII or as an escape"));
    }
    if let Some(leftover) = joined(LEFTOVERS).find(|leftover| is_word_in(line, leftover)) {
        wrong.push((format!("a leftover, {leftover}"), "finish it, or open an issue"));
    }
}

/// Returns the lines of documentation at which code begins that rustdoc would run as a test.
fn examples(text: &str) -> Vec<usize> {
    let (mut found, mut is_open) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.trim_start().strip_prefix("//").and_then(|it| it.strip_prefix(['/', '!']));
        let Some(language) = words.and_then(|it| it.trim_start().strip_prefix("```")) else {
            continue;
        };
        if !is_open && !QUOTED.contains(&language) {
            found.push(number);
        }
        is_open = !is_open;
    }
    found
}

/// Returns whether the file is source code that a compiler or interpreter reads.
fn is_source(path: &str) -> bool {
    ["rs", "sh", "py", "c"].iter().any(|ending| path.ends_with(&format!(".{ending}")))
        || path.ends_with(".ci/run")
}

fn joined(halves: &'static [(&str, &str)]) -> impl Iterator<Item = String> {
    halves.iter().map(|(left, right)| format!("{left}{right}"))
}

/// Returns whether `word` is in `line` with no letter, digit or underscore next to it.
fn is_word_in(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let behind = line[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && (word.ends_with('!') || !behind.is_some_and(is_part))
    })
}

/// Returns whether `path` is in `line` as the beginning of a path.
fn is_path_in(line: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-./}".contains(c);
    line.match_indices(path)
        .any(|(start, _)| !line[..start].chars().next_back().is_some_and(is_part))
}

fn is_foreign_registry(path: &str, line: &str) -> bool {
    let locked = path.ends_with("Cargo.lock") && line.starts_with("source = ");
    let configured = path.contains(".cargo/") && line.starts_with("[source.");
    configured || (locked && !line.contains(INDEX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, line: &str) -> usize {
        let text = Text { path: path.into(), text: String::new() };
        wrong_with(&text, line).count()
    }

    #[test]
    fn clean_lines_pass() {
        assert_eq!(count("a.rs", "let todos = mktemp(\"a.XXXXXX\"); // /srv/work/a"), 0);
        assert_eq!(count("a.md", "2 \u{d7} 3"), 0);
        assert_eq!(count("Cargo.lock", &format!("source = \"{INDEX}\"")), 0);
    }

    #[test]
    fn code_in_documentation_is_found_and_other_text_is_not() {
        let lines = ["//! ```", "//! f();", "//! ```", "/// ```text", "/// ```", "//! ```rust"];
        let text = lines.join("\n");
        assert_eq!(examples(&text), [1, 6]);
    }

    #[test]
    fn each_rule_finds_its_line() {
        assert_eq!(count("a.rs", &"x".repeat(101)), 1);
        assert_eq!(count("a.sh", "echo \u{e4}"), 1);
        for leftover in joined(LEFTOVERS) {
            assert_eq!(count("a.rs", &format!("  {leftover}(1)")), 1, "{leftover}");
        }
        for word in joined(WORDS) {
            assert_eq!(count("a.md", &format!("A {word}.")), 1, "{word}");
        }
        for path in joined(FOREIGN) {
            assert_eq!(count("a.toml", &format!("a = \"{path}b\"")), 1, "{path}");
        }
        assert_eq!(count("Cargo.lock", "source = \"registry+https://mirror.example/\""), 1);
        assert_eq!(count(".cargo/config.toml", "[source.crates-io]"), 1);
    }
}
