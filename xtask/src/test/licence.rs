//! Licence expressions (SPDX 2.3, annex D, and the older form with `/`).

/// Returns whether the licences of `allowed` satisfy `expression`; false if it is malformed.
pub(super) fn allows(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let is_allowed = words.any();
    is_allowed == Some(true) && words.at == words.words.len()
}

struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [String],
}

impl Words<'_> {
    fn any(&mut self) -> Option<bool> {
        let mut is_allowed = self.all()?;
        while self.take("OR") {
            is_allowed |= self.all()?;
        }
        Some(is_allowed)
    }

    fn all(&mut self) -> Option<bool> {
        let mut is_allowed = self.one()?;
        while self.take("AND") {
            is_allowed &= self.one()?;
        }
        Some(is_allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let is_allowed = self.any()?;
            return self.take(")").then_some(is_allowed);
        }
        let mut licence = self.next()?.to_owned();
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.next()?);
        }
        Some(self.allowed.contains(&licence))
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn next(&mut self) -> Option<&str> {
        self.at += 1;
        self.words.get(self.at - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::allows;

    #[test]
    fn expressions_are_satisfied_as_they_say() {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "Unlicense/MIT",
            "(GPL-3.0 OR MIT) AND Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(allows(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT)", "MIT OR", "MIT WITH x", "mit"]
        {
            assert!(!allows(bad, &allowed), "{bad}");
        }
    }
}
