use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, bail};

/// The configuration of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// The code is absent: a build without range maps and cloaks.
    Van,
    /// The code is there and not used.
    Mnu,
    /// A range map of uids.
    Rmap,
    /// Range maps of uids and of gids.
    RmapGid,
    /// Cloaks.
    Clk,
    /// A range map of uids and cloaks, on the same users.
    RmapClk,
}

/// The owners of the files in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Files {
    /// 1,000 files of the caller.
    Own,
    /// 1,000 files of other users, spread over the entries in order: files of one user are
    /// adjacent.
    Mixed,
    /// This number of files, all hidden from the caller if there are cloaks.
    Hidden(usize),
    /// None.
    Empty,
}

/// The part of an `ls -lR` that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// GETATTR and READDIRPLUS of a directory, and GETATTR of each entry.
    Walk,
    /// The same without the entries' GETATTR.
    List,
}

/// One thing to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The configuration of the server.
    pub configuration: Configuration,
    /// Entries of each map and of the cloak.
    pub entries: u32,
    /// The files that are walked through.
    pub files: Files,
}

/// Number of files in each directory whose files the caller sees.
const SEEN: usize = 1000;

/// Counts of entries.
pub(super) const ENTRIES: [u32; 4] = [10, 100, 1000, 100_000];

/// Counts of hidden files.
pub(super) const HIDDEN_FILES: [usize; 3] = [1000, 10_000, 100_000];

const CONFIGURATIONS: [(Configuration, &str); 6] = [
    (Configuration::Van, "VAN"),
    (Configuration::Mnu, "MNU"),
    (Configuration::Rmap, "RMAP"),
    (Configuration::RmapGid, "RMAP+GID"),
    (Configuration::Clk, "CLK"),
    (Configuration::RmapClk, "RMAPCLK"),
];

impl Case {
    /// A case.
    #[must_use]
    pub const fn new(configuration: Configuration, entries: u32, files: Files) -> Self {
        Self { configuration, entries, files }
    }

    /// The directory that is walked through, below the tree's top.
    #[must_use]
    pub fn directory(&self) -> String {
        match self.files {
            Files::Mixed => format!("mixed-{}", self.entries),
            files => files.to_string(),
        }
    }

    /// Returns the number of entries that are visible there.
    #[must_use]
    pub const fn seen(&self) -> usize {
        match (self.files, self.configuration) {
            (Files::Own | Files::Mixed, _) => SEEN,
            (Files::Hidden(count), Configuration::Mnu) => count,
            (Files::Hidden(_) | Files::Empty, _) => 0,
        }
    }

    /// All configurations with all counts of entries.
    pub(super) fn counted() -> Vec<(Self, Part)> {
        let used = [
            Configuration::Rmap,
            Configuration::RmapGid,
            Configuration::Clk,
            Configuration::RmapClk,
        ];
        let mut cases = Vec::new();
        for files in [Files::Mixed, Files::Own] {
            for unused in [Configuration::Van, Configuration::Mnu] {
                cases.push(Self::new(unused, 1000, files));
            }
            for configuration in used {
                cases.extend(ENTRIES.map(|entries| Self::new(configuration, entries, files)));
            }
        }
        let parts = |case| [(case, Part::Walk), (case, Part::List)];
        cases.into_iter().flat_map(parts).collect()
    }

    /// Directories in which all is hidden, the same with nothing hidden, and an empty one.
    pub(super) fn hidden() -> Vec<(Self, Part)> {
        let mut cases = vec![Self::EMPTY];
        for files in HIDDEN_FILES.map(Files::Hidden) {
            cases.extend(
                [Configuration::Clk, Configuration::Mnu].map(|c| Self::new(c, 1000, files)),
            );
        }
        cases.into_iter().map(|case| (case, Part::List)).collect()
    }

    /// A directory without entries, and nothing that could hide any.
    pub(super) const EMPTY: Self = Self::new(Configuration::Van, 1000, Files::Empty);
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = CONFIGURATIONS.iter().find(|(configuration, _)| configuration == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("own"),
            Self::Mixed => f.write_str("mixed"),
            Self::Hidden(count) => write!(f, "hidden-{count}"),
            Self::Empty => f.write_str("empty"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Walk { "walk" } else { "list" })
    }
}

/// `RMAP:1000:mixed`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.configuration, self.entries, self.files)
    }
}

impl FromStr for Case {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let words: Vec<&str> = text.split(':').collect();
        let [configuration, entries, files] = words[..] else { bail!("no case: {text}") };
        let named = CONFIGURATIONS.iter().find(|(_, name)| *name == configuration);
        let (configuration, _) = named.with_context(|| format!("no configuration: {text}"))?;
        Ok(Self::new(*configuration, entries.parse()?, files.parse()?))
    }
}

impl FromStr for Files {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "own" => Self::Own,
            "mixed" => Self::Mixed,
            "empty" => Self::Empty,
            _ => {
                let count =
                    text.strip_prefix("hidden-").with_context(|| format!("no files: {text}"));
                Self::Hidden(count?.parse()?)
            }
        })
    }
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "walk" => Ok(Self::Walk),
            "list" => Ok(Self::List),
            _ => bail!("no part: {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_as_they_are_written() {
        for (case, _) in Case::counted().into_iter().chain(Case::hidden()) {
            assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
        }
        for bad in ["", "RMAP", "RMAP:10:none", "RANGE:10:own", "RMAP:x:own", "RMAP:1:own:2"] {
            assert!(bad.parse::<Case>().is_err(), "{bad}");
        }
    }
}
