//! The part of comity-exports(5) about options, from the table of docs/exports.md.

/// The document that contains the table.
const TABLE: &str = include_str!("../../../../docs/exports.md");

/// All options in the format of man(7): the honoured ones, then the refused ones.
pub(super) fn roff() -> String {
    format!(".SS Honoured\n{}.SS Refused\n{}", section("honoured"), section("refused"))
}

/// The options with this verdict, one paragraph each.
fn section(verdict: &str) -> String {
    let of_verdict = rows().filter(|row| row.verdict == verdict);
    of_verdict.map(|row| format!(".TP\n.B {}\n{}.\n", text(row.name), sentence(row.note))).collect()
}

struct Row<'a> {
    name: &'a str,
    verdict: &'a str,
    note: &'a str,
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    TABLE.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (verdict, note) = rest.strip_suffix(" |")?.split_once(" | ")?;
        Some(Row { name, verdict, note })
    })
}

fn sentence(note: &str) -> String {
    let note = text(note.trim_end_matches('.'));
    let mut letters = note.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => note,
    }
}

/// Text in the format of man(7); text between backquotes is bold.
fn text(markdown: &str) -> String {
    let escaped = markdown.replace('\\', "\\e").replace('-', "\\-");
    let mut parts = escaped.split('`');
    let mut roff = parts.next().unwrap_or_default().to_owned();
    for (part, font) in parts.zip(["\\fB", "\\fR"].into_iter().cycle()) {
        roff.push_str(font);
        roff.push_str(part);
    }
    // A line that begins with a dot or a quote would be a command of roff.
    if roff.starts_with(['.', '\'']) { format!("\\&{roff}") } else { roff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_a_paragraph() {
        let count = |verdict: &str| rows().filter(|row| row.verdict == verdict).count();
        let page = roff();
        assert!(count("honoured") > 20 && count("refused") > 5, "{page}");
        assert_eq!(page.matches(".TP\n").count(), count("honoured") + count("refused"));
        assert!(page.contains(".TP\n.B no_root_squash\nThe client's superuser"), "{page}");
    }

    #[test]
    fn code_is_bold_and_nothing_is_a_command() {
        assert_eq!(text("a `b-c` d"), "a \\fBb\\-c\\fR d");
        assert_eq!(text(".x"), "\\&.x");
        assert_eq!(sentence("one, two."), "One, two");
    }
}
