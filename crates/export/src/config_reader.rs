use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;

use crate::diagnostic::Diagnostics;
use crate::{Client, Location};

/// Finds the line and column of every part of a TOML text.
pub(crate) struct Reader<'a> {
    pub(crate) file: &'a Arc<str>,
    /// Byte offsets at which lines begin.
    lines: Vec<usize>,
    pub(crate) diagnostics: &'a mut Diagnostics,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a Arc<str>, text: &[u8], diagnostics: &'a mut Diagnostics) -> Self {
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { file, lines, diagnostics }
    }

    /// Parses a client, and returns it with its location.
    pub(crate) fn client(&mut self, text: &Spanned<String>) -> Option<(Client, Location)> {
        let client = Client::parse(text.get_ref());
        let client = client.map_err(|what| self.error(&text.span(), what)).ok()?;
        Some((client, self.place(&text.span())))
    }

    pub(crate) fn error(&mut self, span: &Range<usize>, what: impl Into<String>) {
        let place = self.place(span);
        self.diagnostics.error(&place, what);
    }

    pub(crate) fn place(&self, span: &Range<usize>) -> Location {
        let line = self.lines.partition_point(|begin| *begin <= span.start);
        let begin = line.checked_sub(1).and_then(|line| self.lines.get(line)).unwrap_or(&0);
        let column = span.start - begin + 1;
        Location { file: Arc::clone(self.file), line: line as u32, column: column as u32 }
    }
}
