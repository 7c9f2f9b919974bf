//! The lines of documents: the number of columns that prose in markdown may have.

use super::Finding;
use super::sources::{Text, Tree};

/// Most columns of a line of prose. Tables and quoted output are not limited.
const COLUMNS_MAX: usize = 120;

/// Finds the lines of prose that are too wide.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for text in tree.texts.iter().filter(|text| text.path.ends_with(".md")) {
        for (line, columns) in wide_lines(text) {
            let remedy = "break the line at 120";
            findings.push(Finding::new((&text.path, line), format!("{columns} columns"), remedy));
        }
    }
}

/// The numbers of the lines of prose that are too wide, each with its columns.
fn wide_lines(text: &Text) -> Vec<(usize, usize)> {
    let mut is_quoted = false;
    let mut wide = Vec::new();
    for (number, line) in (1..).zip(text.text.lines()) {
        let is_fence = line.trim_start().starts_with("```");
        is_quoted ^= is_fence;
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !is_quoted && is_prose(line) {
            wide.push((number, columns));
        }
    }
    wide
}

/// Returns whether a line outside fences can be broken: it is neither a row of a table, nor
/// indented as quoted output, nor one long word such as an address.
fn is_prose(line: &str) -> bool {
    let is_output = line.starts_with("    ") && !line.trim_start().starts_with("- ");
    !line.trim_start().starts_with('|') && !is_output && line.trim().contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        let texts = vec![Text { path: path.into(), text: text.into() }];
        let mut findings = Vec::new();
        check(&Tree { texts, sources: Vec::new() }, &mut findings);
        findings.len()
    }

    #[test]
    fn a_wide_line_of_prose_is_found() {
        let wide = "word ".repeat(25);
        assert_eq!(count("docs/a.md", &format!("short\n{wide}\n```\n{wide}\n```\n{wide}")), 2);
        assert_eq!(count("docs/a.md", &format!("    - {wide}")), 1);
        assert_eq!(count("docs/a.md", &"word ".repeat(24)), 0);
    }

    #[test]
    fn tables_output_and_addresses_may_be_wide() {
        let wide = "word ".repeat(25);
        for line in [format!("| {wide} |"), format!("    {wide}"), "x".repeat(130)] {
            assert_eq!(count("docs/a.md", &line), 0, "{line}");
        }
        assert_eq!(count("a.txt", &wide), 0);
    }
}
