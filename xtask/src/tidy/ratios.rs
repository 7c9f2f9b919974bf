//! The ratio of tests to production code: lines of tests per line of production code, for each
//! crate.
//!
//! Only lines of code count, not empty lines and comments, of which production code has more than
//! tests. Transcripts are tests; conformance cases are not, because they are a library.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Item, ItemMod};

use super::Finding;
use super::modules::is_test_only;
use super::sources::{Source, Tree};
use super::words::crate_of;

/// The crates that decide about access, with the lowest ratio of each.
const WANTED: &[(&str, f64)] =
    &[("state", 1.0), ("rpc", 0.8), ("idmap", 0.8), ("server", 0.8), ("export", 0.8)];

/// Lines of code of one crate.
#[derive(Default)]
struct Lines {
    production: usize,
    tests: usize,
}

impl Lines {
    fn ratio(&self) -> f64 {
        self.tests as f64 / self.production.max(1) as f64
    }
}

/// A table of all crates, in which those with too few tests are marked.
pub(super) fn table(tree: &Tree) -> String {
    let mut table = String::from("crate          production   tests  ratio  wanted\n");
    for (name, lines) in measured(tree) {
        let wanted = WANTED.iter().find(|(wanted, _)| *wanted == name).map(|(_, ratio)| *ratio);
        let lacks = wanted.is_some_and(|wanted| lines.ratio() < wanted);
        let wanted = wanted.map_or(String::new(), |wanted| format!("{wanted:>7.1}"));
        let Lines { production, tests } = lines;
        let ratio = lines.ratio();
        let mark = if lacks { "  too few" } else { "" };
        let _ = writeln!(table, "{name:14} {production:>10} {tests:>7} {ratio:>6.2}{wanted}{mark}");
    }
    table
}

/// Finds crates with fewer lines of tests than wanted.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let crates = measured(tree);
    for (name, wanted) in WANTED {
        let ratio = crates.get(*name).map_or(0.0, Lines::ratio);
        if ratio < *wanted {
            let path = format!("crates/{name}/src/lib.rs");
            let what = format!("{ratio:.3} lines of tests per line of production code of `{name}`");
            let remedy = format!("write tests of what is least tested: {wanted} is wanted");
            findings.push(Finding::new((&path, 1), what, remedy));
        }
    }
}

fn measured(tree: &Tree) -> BTreeMap<String, Lines> {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| source.path.starts_with("crates/")) {
        let lines = crates.entry(crate_of(&source.path)).or_default();
        let tests = tests_of(source);
        let is_test = |line: &usize| source.is_test || tests.iter().any(|it| it.contains(line));
        let code = code_lines(&source.text, "//");
        let (tests, production): (Vec<_>, Vec<_>) = code.partition(is_test);
        lines.tests += tests.len();
        lines.production += production.len();
    }
    for text in tree.texts.iter().filter(|text| is_transcript(&text.path)) {
        let lines = crates.entry(crate_of(&text.path)).or_default();
        lines.tests += code_lines(&text.text, "#").count();
    }
    crates
}

fn is_transcript(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/transcripts/") && path.ends_with(".txt")
}

/// The numbers of the lines that are neither empty nor comments.
fn code_lines<'t>(text: &'t str, comment: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_code = move |line: &str| !line.is_empty() && !line.starts_with(comment);
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(move |(_, line)| is_code(line)).map(|(number, _)| number)
}

/// The lines of the items of a source that are compiled for tests only.
fn tests_of(source: &Source) -> Vec<RangeInclusive<usize>> {
    let mut tests = Tests(Vec::new());
    tests.visit_file(&source.syntax);
    tests.0
}

struct Tests(Vec<RangeInclusive<usize>>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).is_some_and(is_test_only) {
            let span = item.span();
            self.0.push(span.start().line..=span.end().line);
        } else {
            visit::visit_item(self, item);
        }
    }
}

fn attributes(item: &Item) -> Option<&[syn::Attribute]> {
    match item {
        Item::Mod(ItemMod { attrs, .. }) => Some(attrs),
        Item::Fn(item) => Some(&item.attrs),
        Item::Impl(item) => Some(&item.attrs),
        Item::Use(item) => Some(&item.attrs),
        Item::Struct(item) => Some(&item.attrs),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sources::Text;

    fn ratio(tree: &Tree) -> (usize, usize) {
        let lines = measured(tree).remove("a").unwrap();
        (lines.production, lines.tests)
    }

    #[test]
    fn comments_and_empty_lines_do_not_count() {
        let text = "//! A crate.\n\n/// A function.\nfn f() {\n    // Why.\n    g();\n}\n";
        let sources = vec![Source::parse("crates/a/src/lib.rs", text).unwrap()];
        assert_eq!(ratio(&Tree { texts: Vec::new(), sources }), (3, 0));
    }

    #[test]
    fn a_crate_with_fewer_tests_than_wanted_is_found() {
        let found = |tests: &str| {
            let sources = vec![
                Source::parse("crates/state/src/lib.rs", "fn f() {\n    g();\n}\n").unwrap(),
                Source::parse("crates/state/tests/t.rs", tests).unwrap(),
            ];
            let mut findings = Vec::new();
            check(&Tree { texts: Vec::new(), sources }, &mut findings);
            findings.iter().filter(|found| found.path == "crates/state/src/lib.rs").count()
        };
        assert_eq!(found("#[test]\nfn t() {}\n// A comment is no test.\n"), 1);
        assert_eq!(found("#[test]\nfn t() {\n}\n"), 0);
    }

    #[test]
    fn tests_below_the_code_in_their_folder_and_transcripts_count_as_tests() {
        let below = "fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n";
        let sources = vec![
            Source::parse("crates/a/src/lib.rs", below).unwrap(),
            Source::parse("crates/a/tests/t.rs", "#[test]\nfn t() {}\n").unwrap(),
        ];
        let transcript = Text {
            path: "crates/a/tests/transcripts/t.txt".into(),
            text: "# A remark.\n> open\n  ok\n".into(),
        };
        assert_eq!(ratio(&Tree { texts: vec![transcript], sources }), (1, 5 + 2 + 2));
    }
}
