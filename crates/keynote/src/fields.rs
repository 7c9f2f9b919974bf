//! The fields of an assertion's text (RFC 2704, section 4.1): labels, continuation lines, order.

use crate::parse_error::{ParseError, Position, quoted};

/// The label of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Version,
    LocalConstants,
    Authorizer,
    Licensees,
    Conditions,
    Comment,
    Signature,
}

/// The labels as written; their case is ignored.
const LABELS: [(&str, Label); 7] = [
    ("KeyNote-Version", Label::Version),
    ("Local-Constants", Label::LocalConstants),
    ("Authorizer", Label::Authorizer),
    ("Licensees", Label::Licensees),
    ("Conditions", Label::Conditions),
    ("Comment", Label::Comment),
    ("Signature", Label::Signature),
];

/// A field with its content: the rest of its line and its continuation lines.
#[derive(Debug)]
pub(crate) struct Field<'a> {
    pub(crate) label: Label,
    /// Bytes of the text before the label.
    pub(crate) start: usize,
    /// The position of the label.
    pub(crate) at: Position,
    pub(crate) content: &'a str,
    /// Bytes of the text before the content.
    content_start: usize,
    /// The position of the content.
    pub(crate) content_at: Position,
}

impl Field<'_> {
    /// Bytes of the text up to the end of the field and its last newline.
    pub(crate) const fn end(&self) -> usize {
        self.content_start + self.content.len()
    }
}

/// Splits a text into the fields of one assertion. Empty lines and comment lines may precede and
/// follow them. Lines are counted from `first_line`.
///
/// # Errors
/// A line that is neither a field nor a continuation, a label that is unknown, repeated or out of
/// order, or an empty line within the assertion.
pub(crate) fn split(text: &str, first_line: u32) -> Result<Vec<Field<'_>>, ParseError> {
    let mut splitter = Splitter { text, fields: Vec::new(), is_over: false };
    let mut start = 0;
    for (line, number) in text.split_inclusive('\n').zip(first_line..) {
        splitter.line(line, start, number)?;
        start += line.len();
    }
    splitter.check_order()?;
    Ok(splitter.fields)
}

struct Splitter<'a> {
    text: &'a str,
    fields: Vec<Field<'a>>,
    /// True if an empty line has followed the fields.
    is_over: bool,
}

impl<'a> Splitter<'a> {
    fn line(&mut self, line: &'a str, start: usize, number: u32) -> Result<(), ParseError> {
        let at = Position { line: number, column: 1 };
        let is_comment = line.starts_with('#');
        if line.trim().is_empty() {
            self.is_over = !self.fields.is_empty();
        } else if self.is_over && !is_comment {
            return Err(ParseError::new(at, "the end of the assertion", quoted(line.trim())));
        } else if is_comment || line.starts_with([' ', '\t']) {
            self.continuation(line, start, at, is_comment)?;
        } else {
            let field = label(line, start, at)?;
            self.fields.push(field);
        }
        Ok(())
    }

    fn continuation(
        &mut self,
        line: &str,
        start: usize,
        at: Position,
        is_comment: bool,
    ) -> Result<(), ParseError> {
        match self.fields.last_mut() {
            Some(field) if !self.is_over => {
                let end = start + line.len();
                field.content = self.text.get(field.content_start..end).unwrap_or_default();
            }
            None if !is_comment => {
                return Err(ParseError::new(at, "a field", quoted(line.trim())));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that no field is repeated, KeyNote-Version comes first and Signature last.
    fn check_order(&self) -> Result<(), ParseError> {
        let mut seen = Vec::new();
        for field in &self.fields {
            let expected = match field.label {
                label if seen.contains(&label) => "each field once",
                Label::Version if !seen.is_empty() => "KeyNote-Version first",
                _ if seen.contains(&Label::Signature) => "no field after Signature",
                _ => "",
            };
            if !expected.is_empty() {
                return Err(ParseError::new(field.at, expected, name_of(field.label)));
            }
            seen.push(field.label);
        }
        Ok(())
    }
}

fn name_of(label: Label) -> &'static str {
    LABELS.iter().find(|(_, other)| *other == label).map_or("", |(name, _)| name)
}

/// Reads the label at the beginning of a line.
fn label(line: &str, start: usize, at: Position) -> Result<Field<'_>, ParseError> {
    let unknown = || ParseError::new(at, "a field", quoted(line.trim()));
    let (name, content) = line.split_once(':').ok_or_else(unknown)?;
    let is_it = |(known, _): &&(&str, Label)| known.eq_ignore_ascii_case(name);
    let (known, label) = LABELS.iter().find(is_it).ok_or_else(unknown)?;
    let content_start = start + name.len() + 1;
    let content_at = Position { line: at.line, column: known.len() as u32 + 2 };
    Ok(Field { label: *label, start, at, content, content_start, content_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (u32, String) {
        let error = split(text, 1).unwrap_err();
        (error.line, error.expected)
    }

    #[test]
    fn fields_continue_in_indented_lines_and_around_comments() {
        let text = "# before\n\nauthorizer: a\n# within\n b\nCOMMENT:c\n\n# behind\n\n";
        let fields = split(text, 1).unwrap();
        let found: Vec<_> = fields.iter().map(|field| (field.label, field.content)).collect();
        let expected = [(Label::Authorizer, " a\n# within\n b\n"), (Label::Comment, "c\n")];
        assert_eq!(found, expected);
        assert_eq!((fields[1].at.line, fields[1].content_at.column), (6, 9));
        assert_eq!(&text[fields[1].start..fields[1].end()], "COMMENT:c\n");
    }

    #[test]
    fn lines_that_are_not_fields_are_refused() {
        assert_eq!(fault("Authorizer: a\n\nComment: b\n"), (3, "the end of the assertion".into()));
        assert_eq!(fault(" Authorizer: a\n"), (1, "a field".into()));
        assert_eq!(fault("Authorizer: a\nAuthorised: b\n"), (2, "a field".into()));
        assert_eq!(fault("Authorizer\n"), (1, "a field".into()));
    }

    #[test]
    fn fields_out_of_order_are_refused() {
        assert_eq!(fault("Comment: a\nCOMMENT: b\n"), (2, "each field once".into()));
        assert_eq!(fault("Comment: a\nKeyNote-Version: 2"), (2, "KeyNote-Version first".into()));
        assert_eq!(fault("Signature: a\nComment: b"), (2, "no field after Signature".into()));
    }
}
