//! Translates extended regular expressions of POSIX (IEEE Std 1003.1, section 9.4) to the engine's
//! syntax.
//!
//! Expressions that POSIX leaves undefined are invalid: back-references, `\w` and the like, two
//! repetitions in a row, a repetition of nothing.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

use crate::limits::{REGEX_GROUPS_MAX, REGEX_WEIGHT_MAX};

/// Most repetitions in an interval (RE_DUP_MAX).
const REPETITIONS_MAX: usize = 255;

/// The weight of a character set: the engine tests each byte of a character.
const SET_WEIGHT: usize = 4;

/// The class names between `[:` and `:]`.
const CLASSES: [&str; 12] = [
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "xdigit",
];

/// An expression in the syntax of the engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) expression: String,
    /// Groups in parentheses.
    pub(super) groups: usize,
    /// Number of single-character tests after intervals are expanded.
    pub(super) weight: usize,
    /// The text to search for, if the expression is a plain text.
    pub(super) literal: Option<String>,
}

/// Translates an expression; `None` if it is invalid or exceeds a limit.
pub(super) fn translate(pattern: &str) -> Option<Translated> {
    let mut translator = Translator {
        rest: pattern.chars().peekable(),
        out: String::new(),
        groups: 0,
        open: vec![Level::default()],
        literal: Some(String::new()),
    };
    while let Some(char) = translator.rest.next() {
        translator.step(char)?;
    }
    match translator.open.as_slice() {
        [all] if all.weight <= REGEX_WEIGHT_MAX => Some(Translated {
            expression: translator.out,
            groups: translator.groups,
            weight: all.weight,
            literal: translator.literal,
        }),
        _ => None,
    }
}

/// The part of an expression outside of all groups, or an open group.
#[derive(Default)]
struct Level {
    weight: usize,
    /// The weight of the preceding part, if it may be repeated.
    repeatable: Option<usize>,
}

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    groups: usize,
    open: Vec<Level>,
    literal: Option<String>,
}

impl Translator<'_> {
    fn step(&mut self, char: char) -> Option<()> {
        match char {
            '(' => self.begin_group()?,
            ')' => self.end_group()?,
            '*' | '+' | '?' => self.repetition(char)?,
            '{' => self.interval()?,
            '|' | '^' | '$' => self.assertion(char)?,
            '.' => self.set('.')?,
            '[' => self.bracket()?,
            '\\' => {
                let escaped = self.rest.next().filter(|char| !char.is_alphanumeric())?;
                self.character(escaped)?;
            }
            _ => self.character(char)?,
        }
        Some(())
    }

    /// Notes that a repeatable part was written.
    fn atom(&mut self, weight: usize) -> Option<()> {
        let level = self.open.last_mut()?;
        level.weight = level.weight.checked_add(weight).filter(|all| *all <= REGEX_WEIGHT_MAX)?;
        level.repeatable = Some(weight);
        Some(())
    }

    fn character(&mut self, char: char) -> Option<()> {
        write_char(&mut self.out, char);
        self.literal.as_mut().into_iter().for_each(|text| text.push(char));
        self.atom(1)
    }

    /// Writes the end of a part that matches one of many characters.
    fn set(&mut self, end: char) -> Option<()> {
        self.out.push(end);
        self.literal = None;
        self.atom(SET_WEIGHT)
    }

    /// Writes an anchor or the bar between alternatives, which cannot be repeated.
    fn assertion(&mut self, char: char) -> Option<()> {
        self.out.push(char);
        self.literal = None;
        self.open.last_mut()?.repeatable = None;
        Some(())
    }

    fn begin_group(&mut self) -> Option<()> {
        self.groups += 1;
        self.literal = None;
        self.open.push(Level::default());
        self.out.push('(');
        (self.groups <= REGEX_GROUPS_MAX).then_some(())
    }

    fn end_group(&mut self) -> Option<()> {
        let group = self.open.pop()?;
        self.out.push(')');
        self.atom(group.weight.max(1))
    }

    fn repetition(&mut self, char: char) -> Option<()> {
        self.open.last_mut()?.repeatable.take()?;
        self.out.push(char);
        self.literal = None;
        Some(())
    }

    /// Reads `{m}`, `{m,}` or `{m,n}`.
    fn interval(&mut self) -> Option<()> {
        let weight = self.open.last_mut()?.repeatable.take()?;
        let least = self.number()?;
        let most = match self.rest.next()? {
            '}' => Some(least),
            ',' => {
                let most = self.number();
                (self.rest.next()? == '}').then_some(())?;
                most
            }
            _ => return None,
        };
        let times = most.unwrap_or(least + 1).max(1);
        if most.is_some_and(|most| most < least) || times > REPETITIONS_MAX + 1 {
            return None;
        }
        match most {
            Some(most) => write!(self.out, "{{{least},{most}}}").ok()?,
            None => write!(self.out, "{{{least},}}").ok()?,
        }
        self.literal = None;
        self.atom(weight * (times - 1))?;
        self.open.last_mut()?.repeatable = None;
        Some(())
    }

    fn number(&mut self) -> Option<usize> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok().filter(|number| *number <= REPETITIONS_MAX)
    }

    /// Reads a bracket expression after its `[`. Within it a backslash stands for itself.
    fn bracket(&mut self) -> Option<()> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            match self.rest.next()? {
                ']' if !is_first => break,
                '[' if self.rest.peek() == Some(&':') => self.class()?,
                first => {
                    let first = self.element(first)?;
                    self.range(first)?;
                }
            }
            is_first = false;
        }
        self.set(']')
    }

    /// Writes a character of a bracket expression, or the range that it begins.
    fn range(&mut self, first: char) -> Option<()> {
        write_char(&mut self.out, first);
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || ahead.next().is_none_or(|char| char == ']') {
            return Some(());
        }
        self.rest.next();
        let last = self.rest.next()?;
        let last = self.element(last)?;
        self.out.push('-');
        write_char(&mut self.out, last);
        (first <= last).then_some(())
    }

    /// Reads a character, or one between `[.` and `.]` or `[=` and `=]`.
    fn element(&mut self, char: char) -> Option<char> {
        let mark = self.rest.next_if(|next| char == '[' && matches!(next, '.' | '='));
        let Some(mark) = mark else { return Some(char) };
        let element = self.rest.next()?;
        let is_closed = self.rest.next()? == mark && self.rest.next()? == ']';
        is_closed.then_some(element)
    }

    /// Reads a class such as `[:alpha:]` after its first bracket.
    fn class(&mut self) -> Option<()> {
        self.rest.next();
        let mut name = String::new();
        while let Some(char) = self.rest.next_if(char::is_ascii_lowercase) {
            name.push(char);
        }
        let is_closed = self.rest.next()? == ':' && self.rest.next()? == ']';
        if !is_closed || !CLASSES.contains(&name.as_str()) {
            return None;
        }
        write!(self.out, "[:{name}:]").ok()
    }
}

/// Writes a character so that it stands for itself everywhere.
fn write_char(out: &mut String, char: char) {
    if char.is_ascii_alphanumeric() {
        out.push(char);
    } else {
        // Writing to a string does not fail.
        let _ = write!(out, "\\x{{{:X}}}", u32::from(char));
    }
}
