use crate::limits::LINE_BYTES_MAX;

/// A line and column, both counted from 1.
pub(super) type At = (u32, u32);

/// A byte of a word and its location. If it is `plain`, neither quoted nor escaped, it may be
/// punctuation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letter {
    pub(super) byte: u8,
    pub(super) plain: bool,
    pub(super) at: At,
}

impl Letter {
    /// Returns whether it is this punctuation mark, neither quoted nor escaped.
    pub(super) const fn is(&self, sign: u8) -> bool {
        self.plain && self.byte == sign
    }
}

/// A word, separated by blanks.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) letters: Vec<Letter>,
    pub(super) at: At,
}

/// The lines of a file as words: continuation lines are joined, comments removed, quotes and octal
/// escapes resolved. Empty lines are skipped. A line with an error is reported, and the rest of it
/// skipped.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    at: At,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { rest: text, at: (1, 1) }
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<Vec<Word>, (At, String)>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let line = self.line();
            if line.is_err() {
                self.comment();
            }
            if !matches!(&line, Ok(words) if words.is_empty()) {
                return Some(line);
            }
        }
        None
    }
}

impl Lines<'_> {
    fn line(&mut self) -> Result<Vec<Word>, (At, String)> {
        let (start, from) = (self.at, self.rest.len());
        let mut words = Vec::new();
        loop {
            if from - self.rest.len() > LINE_BYTES_MAX {
                return Err((start, format!("an entry over {LINE_BYTES_MAX} bytes")));
            }
            match self.rest {
                [] => return Ok(words),
                [b'\n', ..] => {
                    self.bump();
                    return Ok(words);
                }
                [b'\\', b'\n', ..] => self.skip(2),
                [b'#', ..] => self.comment(),
                [blank, ..] if is_blank(*blank) => self.skip(1),
                _ => words.push(self.word()?),
            }
        }
    }

    /// Skips everything up to the end of the line; a backslash continues the line on the next one.
    fn comment(&mut self) {
        loop {
            match self.rest {
                [] | [b'\n', ..] => return,
                [b'\\', b'\n', ..] => self.skip(2),
                _ => self.skip(1),
            }
        }
    }

    fn word(&mut self) -> Result<Word, (At, String)> {
        let mut word = Word { letters: Vec::new(), at: self.at };
        let mut quote = None;
        loop {
            let at = self.at;
            if word.letters.len() > LINE_BYTES_MAX {
                return Err((word.at, format!("an entry over {LINE_BYTES_MAX} bytes")));
            }
            match *self.rest {
                [] | [b'\n', ..] => match quote {
                    Some(at) => return Err((at, "a quote that does not end on its line".into())),
                    None => return Ok(word),
                },
                [b'"', ..] => {
                    quote = if quote.is_none() { Some(at) } else { None };
                    self.skip(1);
                }
                [b'\\', b'\n', ..] if quote.is_none() => return Ok(word),
                [b'\\', b'\n', ..] => self.skip(2),
                [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                    let byte = (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0');
                    word.letters.push(Letter { byte, plain: false, at });
                    self.skip(4);
                }
                [blank, ..] if is_blank(blank) && quote.is_none() => return Ok(word),
                [byte, ..] => {
                    word.letters.push(Letter { byte, plain: quote.is_none(), at });
                    self.skip(1);
                }
            }
        }
    }

    fn skip(&mut self, count: usize) {
        (0..count).for_each(|_| self.bump());
    }

    fn bump(&mut self) {
        if let Some((first, rest)) = self.rest.split_first() {
            let (line, column) = self.at;
            self.at = if *first == b'\n' { (line + 1, 1) } else { (line, column + 1) };
            self.rest = rest;
        }
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}
