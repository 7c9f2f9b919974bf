//! Words of a line of a transcript.

/// The words of an operation that are still to be read.
pub(crate) struct Words<'t>(std::vec::IntoIter<&'t str>);

impl<'t> Words<'t> {
    pub(crate) fn of(line: &'t str) -> Self {
        Self(line.split_whitespace().collect::<Vec<_>>().into_iter())
    }

    pub(crate) fn next(&mut self) -> &'t str {
        self.0.next().unwrap_or_else(|| panic!("a word is missing"))
    }

    pub(crate) fn rest(&mut self) -> Vec<&'t str> {
        self.0.by_ref().collect()
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> T {
        let word = self.next();
        word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        bytes(self.next())
    }
}

/// Reads a name, in which `\xff` is a byte, `x*256` a repetition and `''` the empty name.
pub(crate) fn bytes(word: &str) -> Vec<u8> {
    if word == "''" {
        return Vec::new();
    }
    if let Some((what, count)) = word.split_once('*') {
        return what.as_bytes().repeat(count.parse().unwrap());
    }
    let mut parts = word.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}
