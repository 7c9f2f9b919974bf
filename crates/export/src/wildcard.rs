use std::fmt;

/// A pattern of host names: `*` is any string, with or without dots, `?` any character, `[a-z]` a
/// character in the set, `[!a-z]` or `[^a-z]` a character not in it (exports(5), "wildcards"). Case
/// is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    text: Box<str>,
    parts: Box<[Part]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Run,
    One,
    Letter(u8),
    Class { ranges: Box<[(u8, u8)]>, negated: bool },
}

impl Wildcard {
    /// Returns whether a client's name must be parsed as a pattern.
    #[must_use]
    pub fn is_meant_by(text: &str) -> bool {
        text.contains(['*', '?', '['])
    }

    /// Parses a pattern.
    ///
    /// # Errors
    /// The mistake in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let mut rest = text.as_bytes();
        let mut parts = Vec::new();
        while let Some((&first, behind)) = rest.split_first() {
            rest = behind;
            parts.push(match first {
                b'*' => Part::Run,
                b'?' => Part::One,
                b'[' => class(&mut rest)?,
                letter if is_host_letter(letter) => Part::Letter(letter),
                other => return Err(format!("{:?} in a host name", char::from(other))),
            });
        }
        parts.dedup_by(|next, part| matches!((next, part), (Part::Run, Part::Run)));
        Ok(Self { text: text.into(), parts: parts.into() })
    }

    /// Returns whether `name` matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (mut parts, mut rest) = (&*self.parts, name.as_bytes());
        let mut retry = None;
        loop {
            match (parts.split_first(), rest.split_first()) {
                (None, None) => return true,
                (Some((Part::Run, behind)), _) => {
                    retry = Some((behind, rest));
                    parts = behind;
                }
                (Some((part, behind)), Some((&letter, letters))) if part.takes(letter) => {
                    (parts, rest) = (behind, letters);
                }
                _ => match retry.and_then(|(behind, from)| Some((behind, from.get(1..)?))) {
                    None => return false,
                    Some((behind, from)) => {
                        retry = Some((behind, from));
                        (parts, rest) = (behind, from);
                    }
                },
            }
        }
    }

    /// Returns its specificity: the number of literal characters.
    #[must_use]
    pub fn literals(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Letter(_))).count()
    }
}

impl fmt::Display for Wildcard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Part {
    fn takes(&self, letter: u8) -> bool {
        let letter = letter.to_ascii_lowercase();
        match self {
            Self::Run | Self::One => true,
            Self::Letter(own) => *own == letter,
            Self::Class { ranges, negated } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&letter)) != *negated
            }
        }
    }
}

/// Returns whether a host name may contain this character; names contain `_` although no RFC allows
/// it.
pub(crate) fn is_host_letter(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | b'_')
}

fn class(rest: &mut &[u8]) -> Result<Part, String> {
    let end = rest.iter().position(|&letter| letter == b']').filter(|&end| end > 0);
    let (inside, behind) =
        end.and_then(|end| rest.split_at_checked(end)).ok_or("'[' without ']'")?;
    *rest = behind.get(1..).unwrap_or_default();
    let (negated, mut inside) = match inside.split_first() {
        Some((b'!' | b'^', inside)) => (true, inside),
        _ => (false, inside),
    };
    let mut ranges = Vec::new();
    while let Some((&from, behind)) = inside.split_first() {
        let (to, behind) = match behind {
            [b'-', to, behind @ ..] => (*to, behind),
            _ => (from, behind),
        };
        if !is_host_letter(from) || !is_host_letter(to) || from > to {
            return Err("a class of characters that no host name has".into());
        }
        ranges.push((from, to));
        inside = behind;
    }
    if ranges.is_empty() {
        return Err("an empty class of characters".into());
    }
    Ok(Part::Class { ranges: ranges.into(), negated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Wildcard::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn patterns_match_as_exports_5_says() {
        for (pattern, name) in [
            ("*.example.org", "a.example.org"),
            ("*.example.org", "a.b.example.org"),
            ("*.Example.org", "A.eXample.ORG"),
            ("lab?", "lab7"),
            ("lab[0-9a]", "laba"),
            ("lab[!0-9]", "labx"),
            ("lab[^0-9]*", "labx.example.org"),
            ("a*b*c", "aXbXbXc"),
            ("**", ""),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.example.org", "example.org"),
            ("*.example.org", "a.example.org.evil.net"),
            ("lab?", "lab"),
            ("lab[0-9]", "labx"),
            ("a*b", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn text_that_is_no_pattern_is_refused() {
        for pattern in ["lab[0-9", "lab[]", "lab[!]", "lab[9-0]", "la b*", "lab[/]", "*\u{e9}"] {
            assert!(Wildcard::parse(pattern).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn many_stars_take_little_time(text in "[*a]{0,200}", name in "[ab]{0,200}") {
            let pattern = Wildcard::parse(&text).unwrap();
            let slow = text.as_bytes().iter().fold(vec![0_usize], |ends, letter| {
                let mut next: Vec<usize> = match letter {
                    b'*' => ends.first().map_or(vec![], |first| (*first..=name.len()).collect()),
                    _ => ends.iter().filter(|&&end| name.as_bytes().get(end) == Some(letter))
                        .map(|end| end + 1).collect(),
                };
                next.sort_unstable();
                next
            });
            prop_assert_eq!(pattern.matches(&name), slow.contains(&name.len()));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*", name in ".*") {
            if let Ok(pattern) = Wildcard::parse(&text) {
                let _ = pattern.matches(&name);
            }
        }
    }
}
