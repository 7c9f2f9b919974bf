//! Tables of a page: sortable, with a caption, each cell knowing its number.

use std::fmt::Write as _;

use super::svg::escape;

/// A table in progress.
#[derive(Debug)]
pub(super) struct Table {
    caption: String,
    heads: Vec<String>,
    rows: Vec<Vec<Entry>>,
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    text: String,
    below: String,
    class: &'static str,
    value: Option<f64>,
}

impl Entry {
    /// Words.
    #[must_use]
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A number as it is written and as it is sorted.
    #[must_use]
    pub(super) fn number(text: impl Into<String>, value: f64) -> Self {
        Self { text: text.into(), value: Some(value), class: "number", ..Self::default() }
    }

    /// Something small beneath.
    #[must_use]
    pub(super) fn with(mut self, below: impl Into<String>) -> Self {
        self.below = below.into();
        self
    }

    /// A class of the style: `number better`, `number worse`, `number noisy`.
    #[must_use]
    pub(super) fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }
}

impl Table {
    /// An empty table.
    #[must_use]
    pub(super) fn new(caption: &str, heads: Vec<String>) -> Self {
        Self { caption: caption.to_owned(), heads, rows: Vec::new() }
    }

    /// Adds a row; its first cell names it.
    pub(super) fn row(&mut self, row: Vec<Entry>) {
        self.rows.push(row);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as part of a page.
    #[must_use]
    pub(super) fn html(&self) -> String {
        let mut out = String::from("<div class=\"scroll\"><table class=\"sortable\">\n");
        let _ = writeln!(out, "<caption>{}</caption>\n<thead><tr>", escape(&self.caption));
        for (column, head) in self.heads.iter().enumerate() {
            let class = if self.is_numeric(column) { " class=\"number\"" } else { "" };
            let _ = writeln!(out, "<th scope=\"col\"{class}>{}</th>", escape(head));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (place, entry) in row.iter().enumerate() {
                cell(&mut out, entry, place == 0);
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    fn is_numeric(&self, column: usize) -> bool {
        self.rows.iter().filter_map(|row| row.get(column)).any(|entry| entry.value.is_some())
    }
}

fn cell(out: &mut String, entry: &Entry, is_first: bool) {
    let (tag, scope) = if is_first { ("th", " scope=\"row\"") } else { ("td", "") };
    let _ = write!(out, "<{tag}{scope}");
    if !entry.class.is_empty() {
        let _ = write!(out, " class=\"{}\"", entry.class);
    }
    if let Some(value) = entry.value {
        let _ = write!(out, " data-value=\"{value}\"");
    }
    let _ = write!(out, ">{}", escape(&entry.text));
    if !entry.below.is_empty() {
        let _ = write!(out, "<small>{}</small>", escape(&entry.below));
    }
    let _ = write!(out, "</{tag}>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_know_their_number() {
        let mut table = Table::new("a < b", vec!["x".into(), "y".into()]);
        table.row(vec![Entry::words("<i>"), Entry::number("1,230 /s", 1234.5).with("+-2 %")]);
        let html = table.html();
        assert!(html.contains("<caption>a &lt; b</caption>"), "{html}");
        assert!(html.contains(r#"<th scope="row">&lt;i&gt;</th>"#), "{html}");
        assert!(html.contains(r#"data-value="1234.5">1,230 /s<small>+-2 %</small>"#), "{html}");
    }
}
