//! Counts that may only decrease: modules of a crate in cycles, headless comments of a crate, uses
//! of a banned word, and types with the same name. They are in `xtask/tables.toml`; `cargo xtask
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
    /// Comments that begin with a relative clause instead of a sentence, by crate.
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

    /// The content of the file, with a line for each count that is not zero.
    pub(super) fn file(&self) -> String {
        let mut text = "# Numbers that may only fall, as `cargo xtask tidy --tables` prints them; \
                        see xtask/src/tidy/tables.rs.\n"
            .to_owned();
        let tables = [
            ("cycles", &self.cycles),
            ("headless", &self.headless),
            ("words", &self.words),
            ("types", &self.types),
        ];
        for (name, counts) in tables {
            let _ = writeln!(text, "\n[{name}]");
            for (key, count) in counts.iter().filter(|(_, count)| **count > 0) {
                let _ = writeln!(text, "{key} = {count}");
            }
        }
        text
    }
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
    fn a_file_that_makes_no_sense_is_found() {
        assert_eq!(read("[cycles]\nstate = 1\n").1, 1);
        assert_eq!(read("cycle = 1").1, 1);
    }
}
