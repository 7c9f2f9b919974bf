//! Tables of a page: sortable, with a caption, and with a number for each cell.

use maud::{Markup, html};

use super::svg::printable;

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
    /// A cell of words.
    #[must_use]
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A cell with a number as text and as a value to sort by.
    #[must_use]
    pub(super) fn number(text: impl Into<String>, value: f64) -> Self {
        Self { text: text.into(), value: Some(value), class: "number", ..Self::default() }
    }

    /// Adds small text below.
    #[must_use]
    pub(super) fn with(mut self, below: impl Into<String>) -> Self {
        self.below = below.into();
        self
    }

    /// Sets a class of the style: `number better`, `number worse`, `number noisy`.
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
    pub(super) fn html(&self) -> Markup {
        html! {
            div class="scroll" {
                table class="sortable" {
                    caption { (printable(&self.caption)) }
                    thead {
                        tr {
                            @for (column, head) in self.heads.iter().enumerate() {
                                th .number[self.is_numeric(column)] scope="col" {
                                    (printable(head))
                                }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows { (cells(row)) "\n" }
                    }
                }
            }
        }
    }

    fn is_numeric(&self, column: usize) -> bool {
        self.rows.iter().filter_map(|row| row.get(column)).any(|entry| entry.value.is_some())
    }
}

fn cells(row: &[Entry]) -> Markup {
    html! {
        tr {
            @for (place, entry) in row.iter().enumerate() {
                @let class = Some(entry.class).filter(|class| !class.is_empty());
                @if place == 0 {
                    th scope="row" class=[class] data-value=[entry.value] { (content(entry)) }
                } @else {
                    td class=[class] data-value=[entry.value] { (content(entry)) }
                }
            }
        }
    }
}

fn content(entry: &Entry) -> Markup {
    html! {
        (printable(&entry.text))
        @if !entry.below.is_empty() { small { (printable(&entry.below)) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_know_their_number() {
        let mut table = Table::new("a < b", vec!["x".into(), "y".into()]);
        table.row(vec![Entry::words("<i>"), Entry::number("1,230 /s", 1234.5).with("+-2 %")]);
        let html = table.html().into_string();
        assert!(html.contains("<caption>a &lt; b</caption>"), "{html}");
        assert!(html.contains(r#"<th scope="row">&lt;i&gt;</th>"#), "{html}");
        assert!(html.contains(r#"data-value="1234.5">1,230 /s<small>+-2 %</small>"#), "{html}");
    }
}
