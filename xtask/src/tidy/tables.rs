//! Counts that may only decrease: modules of a crate in cycles, headless comments of a crate and
//! headless prose of a folder, uses of a banned word, and types with the same name. The allowed
//! counts are in `xtask/tables.toml` and may not be higher than the measured ones; `cargo xtask
//! tidy --tables` prints that file with the present counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::Finding;
use super::sources::Tree;

/// The file with the numbers.
pub(super) const PATH: &str = "xtask/tables.toml";

/// A count for each name.
pub(super) type Counts = BTreeMap<String, usize>;

/// The allowed or measured counts of the checkout.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tables {
    /// Top-level modules in cycles, by crate.
    pub(super) cycles: Counts,
    /// Comments and prose that begin with a relative clause instead of a sentence, by crate or
    /// folder.
    pub(super) headless: Counts,
    /// Banned words in identifiers, by word.
    pub(super) words: Counts,
    /// Types with the same name, if there are more than two.
    pub(super) types: Counts,
}

impl Tables {
    /// Reads the allowed counts; a missing file allows none.
    pub(super) fn allowed(tree: &Tree, findings: &mut Vec<Finding>) -> Self {
        let text = tree.texts.iter().find(|text| text.path == PATH);
        let text = text.map_or("", |text| text.text.as_str());
        if text.is_empty() {
            return Self::default();
        }
        toml::from_str(text).unwrap_or_else(|error| {
            let remedy = "write it anew: `cargo xtask tidy --tables`";
            findings.push(Finding::new((PATH, 1), error.to_string(), remedy));
            Self::default()
        })
    }

    /// Finds allowed counts that are higher than the measured ones: otherwise a count could rise
    /// again to what it once was.
    pub(super) fn check_stale(&self, measured: &Self, tree: &Tree, findings: &mut Vec<Finding>) {
        let text = tree.texts.iter().find(|text| text.path == PATH);
        let text = text.map_or("", |text| text.text.as_str());
        for ((table, most), (_, counts)) in self.named().into_iter().zip(measured.named()) {
            for (key, most) in most {
                let count = allowed(counts, key);
                if count < *most {
                    let what = format!("{most} allowed for `{key}` in [{table}]");
                    let remedy = format!("lower it: the measured count is {count}");
                    findings.push(Finding::new((PATH, line_of(text, table, key)), what, remedy));
                }
            }
        }
    }

    fn named(&self) -> [(&'static str, &Counts); 4] {
        [
            ("cycles", &self.cycles),
            ("headless", &self.headless),
            ("words", &self.words),
            ("types", &self.types),
        ]
    }

    /// The content of the file, with a line for each count that is not zero.
    pub(super) fn file(&self) -> String {
        let mut text = "# Numbers that may only fall, as `cargo xtask tidy --tables` prints them; \
                        see xtask/src/tidy/tables.rs.\n"
            .to_owned();
        for (name, counts) in self.named() {
            let _ = writeln!(text, "\n[{name}]");
            for (key, count) in counts.iter().filter(|(_, count)| **count > 0) {
                let _ = writeln!(text, "{key} = {count}");
            }
        }
        text
    }
}

/// The line of a key in a table of the file.
fn line_of(text: &str, table: &str, key: &str) -> usize {
    let (table, key) = (format!("[{table}]"), format!("{key} ="));
    let lines = text.lines().zip(1..).skip_while(|(line, _)| *line != table);
    lines.filter(|(line, _)| line.starts_with(&key)).map(|(_, number)| number).next().unwrap_or(1)
}

/// The allowed count for a name.
pub(super) fn allowed(counts: &Counts, name: &str) -> usize {
    counts.get(name).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::sources::Text;
    use super::*;

    fn read(text: &str) -> (Tables, usize) {
        let texts = vec![Text { path: PATH.into(), text: text.into() }];
        let mut findings = Vec::new();
        let tables = Tables::allowed(&Tree { texts, sources: Vec::new() }, &mut findings);
        (tables, findings.len())
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let one = |name: &str| Counts::from([(name.to_owned(), 3), ("none".to_owned(), 0)]);
        let tables = Tables { cycles: one("state"), types: one("Place"), ..Tables::default() };
        let (again, findings) = read(&tables.file());
        assert_eq!((findings, again.cycles.len()), (0, 1));
        assert_eq!(allowed(&again.types, "Place"), 3);
        assert_eq!(allowed(&again.types, "Kept"), 0);
    }

    #[test]
    fn an_allowed_count_above_the_measured_one_is_found_with_its_line() {
        let text = "[cycles]\nx = 2\n[headless]\n[words]\n[types]\nPlace = 4\nx = 4\n";
        let texts = vec![Text { path: PATH.into(), text: text.into() }];
        let tree = Tree { texts, sources: Vec::new() };
        let tables = Tables::allowed(&tree, &mut Vec::new());
        let found = |count: usize| {
            let types = Counts::from([("Place".to_owned(), 4), ("x".to_owned(), count)]);
            let cycles = Counts::from([("x".to_owned(), 3)]);
            let mut findings = Vec::new();
            let measured = Tables { types, cycles, ..Tables::default() };
            tables.check_stale(&measured, &tree, &mut findings);
            findings
        };
        assert_eq!(found(4), []);
        let remedy = "lower it: the measured count is 3";
        assert_eq!(found(3), [Finding::new((PATH, 7), "4 allowed for `x` in [types]", remedy)]);
    }

    #[test]
    fn a_file_that_makes_no_sense_is_found() {
        assert_eq!(read("[cycles]\nstate = 1\n").1, 1);
        assert_eq!(read("cycle = 1").1, 1);
    }
}
