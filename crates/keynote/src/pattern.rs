//! Regular expressions, matched in time linear in the text (RFC 2704, section 5.3.4).
//!
//! The same texts match as in POSIX. If a text can match in several ways, the groups are those of
//! the first alternative that leads to a match, not those of the longest match. This is the only
//! difference, and it affects only the attributes `_1`, `_2` and so on.

mod posix;
mod ready;

use regex::{Regex, RegexBuilder};

use crate::limits::REGEX_PROGRAM_BYTES_MAX;

pub(crate) use ready::ready_patterns;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// A plain text to search for; it has no groups.
    Text(Box<str>),
    /// An expression for the engine.
    Expression {
        /// The engine's program.
        program: Box<Regex>,
        /// Number of groups in parentheses.
        groups: usize,
        /// Number of single-character tests.
        weight: usize,
    },
    /// An invalid expression, or one that exceeds a limit.
    Invalid,
}

impl Pattern {
    /// Compiles an extended regular expression of POSIX.
    pub(crate) fn new(pattern: &str) -> Self {
        let Some(read) = posix::translate(pattern) else { return Self::Invalid };
        if let Some(text) = read.literal {
            return Self::Text(text.into());
        }
        // The text counts as one line, and a dot matches any character.
        let program = RegexBuilder::new(&read.expression)
            .dot_matches_new_line(true)
            .size_limit(REGEX_PROGRAM_BYTES_MAX)
            .build();
        match program {
            Ok(program) => Self::Expression {
                program: Box::new(program),
                groups: read.groups,
                weight: read.weight,
            },
            Err(_) => Self::Invalid,
        }
    }

    /// The most steps that a match against a text takes.
    pub(crate) fn steps(&self, text: &str) -> usize {
        match self {
            Self::Expression { weight, groups, .. } => text.len() * (weight + groups + 1) / 2,
            Self::Text(_) | Self::Invalid => text.len() / 16,
        }
    }

    /// Number of single-character tests that the engine makes for each character of a text.
    pub(crate) const fn weight(&self) -> usize {
        match self {
            Self::Expression { weight, .. } => *weight,
            Self::Text(_) | Self::Invalid => 0,
        }
    }

    /// Matches a text; returns the groups, or `None` if it does not match. A group that took no
    /// part is empty. `Err` if the pattern is invalid.
    pub(crate) fn find(&self, text: &str) -> Result<Option<Vec<String>>, InvalidPattern> {
        match self {
            Self::Text(wanted) => Ok(text.contains(&**wanted).then(Vec::new)),
            Self::Expression { program, groups: 0, .. } => {
                Ok(program.is_match(text).then(Vec::new))
            }
            Self::Expression { program, .. } => Ok(program.captures(text).map(|found| {
                let groups = found.iter().skip(1);
                groups.map(|group| group.map_or("", |part| part.as_str()).to_owned()).collect()
            })),
            Self::Invalid => Err(InvalidPattern),
        }
    }
}

/// The error for an invalid pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidPattern;

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> Option<bool> {
        Pattern::new(pattern).find(text).ok().map(|found| found.is_some())
    }

    #[test]
    fn texts_match_as_in_posix() {
        for (pattern, yes, no) in [
            ("", "a", ""),
            ("b", "abc", "ac"),
            (r"a\.b", "a.b", "axb"),
            ("^a$", "a", "a\n"),
            ("a.c", "a\nc", "ac"),
            ("^(ab|cd)+$", "abcdab", "abc"),
            ("^a{2,3}$", "aaa", "aaaa"),
            ("^a{2}$", "aa", "a"),
            ("^a{2,}$", "aaaaa", "a"),
            (r"^[\.]$", r"\", "x"),
            ("^[a&&b]$", "&", "x"),
            ("^[]a]$", "]", "b"),
            ("^[^]a]$", "b", "]"),
            ("^[a-]$", "-", "b"),
            ("^[[:digit:]x]+$", "1x2", "a"),
            ("^[[.-.]]$", "-", "a"),
            ("^[[=a=]]$", "a", "="),
            ("^[[]$", "[", "]"),
            ("^[a-c]$", "b", "d"),
            ("^[+--]$", ",", "."),
            ("^a b#c$", "a b#c", "abc"),
            ("^\u{e9}[\u{e9}]$", "\u{e9}\u{e9}", "e"),
            ("^a|b$", "ax", "xa"),
            ("(^a)", "ab", "ba"),
        ] {
            assert_eq!(matches(pattern, yes), Some(true), "{pattern} {yes}");
            assert!(no.is_empty() || matches(pattern, no) == Some(false), "{pattern} {no}");
        }
    }

    #[test]
    fn undefined_and_broken_expressions_are_invalid() {
        for pattern in [
            "(",
            ")",
            "a)",
            "(a",
            "[",
            "[a",
            "[]",
            "[^]",
            "*",
            "a**",
            "a+?",
            "a{2}{3}",
            "^*",
            "(*a)",
            "|*",
            "a{",
            "a{x}",
            "a{3,2}",
            "a{256}",
            "a{,3}",
            r"\w",
            r"\1",
            r"\",
            "(?i)a",
            "[b-a]",
            "[[:alphabet:]]",
            "[[:alpha]",
            "[[.ab.]]",
            "a{1,x}",
            "[[=",
        ] {
            assert_eq!(matches(pattern, "a"), None, "{pattern}");
        }
    }

    #[test]
    fn a_plain_text_needs_no_engine() {
        assert!(matches!(Pattern::new(r"a\.b/c"), Pattern::Text(text) if &*text == "a.b/c"));
        assert!(matches!(Pattern::new("ab*"), Pattern::Expression { .. }));
    }

    #[test]
    fn hostile_expressions_are_refused_or_cheap() {
        let nested = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
        let powers = format!("{}a{}", "(".repeat(6), "{255})".repeat(6));
        let long = "a?".repeat(5000);
        for pattern in [nested, powers, long, "(a{255}){255}".into()] {
            assert!(matches!(Pattern::new(&pattern), Pattern::Invalid), "{}", pattern.len());
        }
        // Backtracking engines take time that is exponential in the length of this text.
        assert_eq!(matches("^(a|a)*$", &("a".repeat(5000) + "b")), Some(false));
        assert_eq!(matches("^(a*)*$", &("a".repeat(5000) + "b")), Some(false));
    }

    #[test]
    fn groups_are_those_of_the_first_alternative() {
        let groups = |pattern, text| Pattern::new(pattern).find(text).unwrap().unwrap();
        assert_eq!(groups("^(a)(b)?(c*)", "accd"), ["a", "", "cc"]);
        // POSIX would return `ab` here.
        assert_eq!(groups("(a|ab)(c|bcd)?", "ab"), ["a", ""]);
    }
}
