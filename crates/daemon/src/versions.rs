//! The NFS versions that a server enables.

use std::fmt;

use comity_nfs4::Versions;

/// The rest of an error about a word that names no version.
const KNOWN: &str = "expected 3, 4, 4.0, 4.1 or 4.2";

/// The NFS versions that a server enables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken {
    /// Version 3, with MOUNT.
    pub three: bool,
    /// The minor versions of version 4.
    pub four: Versions,
}

impl Spoken {
    /// All versions.
    pub const ALL: Self = Self { three: true, four: Versions::ALL };

    /// Parses a list of versions.
    ///
    /// # Errors
    /// The word that names no version.
    pub fn these<W: AsRef<str>>(words: &[W]) -> Result<Self, String> {
        let mut spoken = Self { three: false, four: Versions([false; 3]) };
        words.iter().try_for_each(|word| spoken.add(word.as_ref()))?;
        if spoken == (Self { three: false, four: Versions([false; 3]) }) {
            return Err(format!("no version is named: {KNOWN}"));
        }
        Ok(spoken)
    }

    fn add(&mut self, word: &str) -> Result<(), String> {
        let [zero, one, two] = &mut self.four.0;
        match word {
            "3" => self.three = true,
            "4" => self.four = Versions::ALL,
            "4.0" => *zero = true,
            "4.1" => *one = true,
            "4.2" => *two = true,
            _ => return Err(format!("{word:?} is not a version of NFS: {KNOWN}")),
        }
        Ok(())
    }

    /// Returns whether any minor version of NFSv4 is enabled.
    pub fn speaks_four(self) -> bool {
        self.four != Versions([false; 3])
    }
}

impl Spoken {
    fn words(self) -> impl DoubleEndedIterator<Item = &'static str> {
        let Versions([zero, one, two]) = self.four;
        let all = [(self.three, "3"), (zero, "4.0"), (one, "4.1"), (two, "4.2")];
        all.into_iter().filter(|(spoken, _)| *spoken).map(|(_, word)| word)
    }

    /// The highest enabled version.
    pub fn highest(self) -> &'static str {
        self.words().next_back().unwrap_or("3")
    }
}

/// A list such as `3, 4.0, 4.1, 4.2`.
impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_enabled_if_it_is_named() {
        let spoken = Spoken::these(&["3", "4.1"]).unwrap();
        assert_eq!(spoken, Spoken { three: true, four: Versions([false, true, false]) });
        assert_eq!(Spoken::these(&["4"]).unwrap().four, Versions::ALL);
        assert_eq!(Spoken::these(&["3", "4"]).unwrap(), Spoken::ALL);
        for wrong in [&["2"][..], &["4.3"], &["3", ""], &[]] {
            assert!(Spoken::these(wrong).is_err(), "{wrong:?}");
        }
    }
}
