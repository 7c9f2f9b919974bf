use std::fmt;

/// The policy by which clients get delegations of directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirectoryGrants {
    /// No delegations are granted.
    Never,
    /// Each client that asks gets a delegation.
    Always,
    /// A client that looks twice within a minute gets a delegation. After a recall it waits, longer
    /// each time.
    #[default]
    SecondAsk,
    /// As [`DirectoryGrants::SecondAsk`], if the delegations of the directory have saved more calls
    /// than they have caused.
    Adaptive,
}

impl DirectoryGrants {
    const ALL: [Self; 4] = [Self::Never, Self::Always, Self::SecondAsk, Self::Adaptive];

    const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::SecondAsk => "second-ask",
            Self::Adaptive => "adaptive",
        }
    }
}

/// Delegations of the directories of an export (`dir_delegations`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectoryDelegations {
    /// The policy.
    pub grants: DirectoryGrants,
    /// True if only this server changes the directories. Otherwise none are delegated: clients
    /// would not notice the changes by other programs.
    pub sole_writer: bool,
    /// True if each change by others recalls a delegation, also where the client asks to be
    /// notified of it instead.
    pub recall_only: bool,
}

impl DirectoryDelegations {
    /// Parses the value of `dir_delegations=`.
    ///
    /// # Errors
    /// The mistake in the value, as a text for users.
    pub(crate) fn parse(value: &str) -> Result<Self, String> {
        let (mut grants, mut sole_writer, mut recall_only) = (None, false, false);
        for word in value.split(':') {
            let found = DirectoryGrants::ALL.into_iter().find(|grants| grants.name() == word);
            match (word, found) {
                ("sole-writer", _) if sole_writer => return Err(format!("{word} stands twice")),
                ("sole-writer", _) => sole_writer = true,
                ("recall-only", _) if recall_only => return Err(format!("{word} stands twice")),
                ("recall-only", _) => recall_only = true,
                (_, Some(_)) if grants.is_some() => {
                    return Err("expected one of never, always, second-ask and adaptive".into());
                }
                (_, Some(_)) => grants = found,
                (_, None) => {
                    return Err(format!(
                        "unknown word {word:?}: expected sole-writer, recall-only, and never, \
                         always, second-ask or adaptive"
                    ));
                }
            }
        }
        let all = Self { grants: grants.unwrap_or_default(), sole_writer, recall_only };
        if !sole_writer && all.grants != DirectoryGrants::Never {
            return Err(format!(
                "without sole-writer no directory is delegated: write {value}:sole-writer if only \
                 this server changes the directories"
            ));
        }
        Ok(all)
    }

    /// Returns whether any directory may be delegated.
    #[must_use]
    pub fn are_granted(&self) -> bool {
        self.sole_writer && self.grants != DirectoryGrants::Never
    }
}

/// Formats the setting as the value of `dir_delegations=`.
impl fmt::Display for DirectoryDelegations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.grants.name())?;
        f.write_str(if self.sole_writer { ":sole-writer" } else { "" })?;
        f.write_str(if self.recall_only { ":recall-only" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_as_it_is_read() {
        for value in [
            "never",
            "always:sole-writer",
            "second-ask:sole-writer",
            "always:sole-writer:recall-only",
        ] {
            assert_eq!(DirectoryDelegations::parse(value).unwrap().to_string(), value);
        }
        let short = DirectoryDelegations::parse("sole-writer").unwrap();
        assert_eq!(short.to_string(), "second-ask:sole-writer");
        assert!(short.are_granted());
        assert!(!DirectoryDelegations::parse("sole-writer:never").unwrap().are_granted());
        assert!(!DirectoryDelegations::default().are_granted());
    }

    #[test]
    fn useless_and_contradictory_values_are_refused() {
        for (value, told) in [
            ("always", "without sole-writer"),
            ("", "unknown word \"\""),
            ("sometimes", "unknown word \"sometimes\""),
            ("never:always", "expected one of"),
            ("sole-writer:sole-writer", "stands twice"),
            ("sole-writer:recall-only:recall-only", "stands twice"),
        ] {
            let error = DirectoryDelegations::parse(value).unwrap_err();
            assert!(error.contains(told), "{value}: {error}");
        }
    }
}
