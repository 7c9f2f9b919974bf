use std::fmt;

use comity_vfs::DirectoryHold;

use crate::limits::{NOTIFICATION_DELAY_MAX, NOTIFICATIONS_DEFAULT, NOTIFICATIONS_MAX};

/// The form of the value of `dir_delegations=`, for the documents.
pub(crate) const VALUE: &str = "[POLICY:]sole-writer, local or local-late, \
    [:recall-only][:notifications=N][:delay=SECONDS]; or never";

/// The meaning of `dir_delegations=`, for the documents.
pub(crate) const ABOUT: &str = "\
    clients of NFSv4.1 that ask for it keep listings and missing names without asking again, \
    until somebody else changes the directory. It takes one of three words: `sole-writer` says \
    that nothing but this server changes the export's directories; `local` makes programs of \
    this machine wait until clients have returned a directory (Linux 6.19); with `local-late` \
    clients are told after such a program has changed it. POLICY is `second-ask` (a client gets \
    a directory into which it looks twice within a minute, and waits longer after each recall; \
    the default), `always`, `adaptive` (at first as second-ask, then without waiting as long as \
    more calls are saved than caused; it also takes a directory back whose notifications are not \
    worth it) or `never`. A client that asks for notifications of a kind of change (`comity \
    mount` asks for all) keeps the directory and is told of such changes; others recall it; with \
    `recall-only` each change recalls it. A client that has not acknowledged N notifications of \
    a directory (64 unless it is said, at most 1024) is too slow: the next change recalls that \
    directory. With `sole-writer` and `delay=SECONDS` a client that asks for it is also notified \
    of changed attributes of the files in a directory, at most so long after a change (60 at \
    most)";

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

/// The programs that change the directories of an export, beside this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryWriters {
    /// There are none.
    ServerOnly,
    /// Programs of this machine. They wait until clients have returned a directory.
    LocalWaiting,
    /// Programs of this machine. Clients are told after a directory was changed.
    LocalLate,
}

impl DirectoryWriters {
    const ALL: [Self; 3] = [Self::ServerOnly, Self::LocalWaiting, Self::LocalLate];

    const fn name(self) -> &'static str {
        match self {
            Self::ServerOnly => "sole-writer",
            Self::LocalWaiting => "local",
            Self::LocalLate => "local-late",
        }
    }

    /// Returns how a delegated directory must be held against these programs; `None` if there are
    /// none.
    #[must_use]
    pub const fn hold(self) -> Option<DirectoryHold> {
        match self {
            Self::ServerOnly => None,
            Self::LocalWaiting => Some(DirectoryHold::Wait),
            Self::LocalLate => Some(DirectoryHold::Late),
        }
    }
}

/// Delegations of the directories of an export (`dir_delegations`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryDelegations {
    /// The policy.
    pub grants: DirectoryGrants,
    /// The programs that change the directories. If they are unknown, no directory is delegated:
    /// clients would not notice the changes.
    pub writers: Option<DirectoryWriters>,
    /// True if each change by others recalls a delegation, also where the client asks to be
    /// notified of it instead.
    pub recall_only: bool,
    /// Most notifications of a directory that a client has not acknowledged. A client that has as
    /// many is recalled before the next change.
    pub notifications_max: u32,
    /// Most seconds from a change of attributes of a file to the notification of a client that is
    /// notified of such changes in a directory; `None` if no client is.
    pub delay_seconds_max: Option<u32>,
}

impl Default for DirectoryDelegations {
    fn default() -> Self {
        Self {
            grants: DirectoryGrants::default(),
            writers: None,
            recall_only: false,
            notifications_max: NOTIFICATIONS_DEFAULT,
            delay_seconds_max: None,
        }
    }
}

impl DirectoryDelegations {
    /// Parses the value of `dir_delegations=`.
    ///
    /// # Errors
    /// The mistake in the value, as a text for users.
    pub(crate) fn parse(value: &str) -> Result<Self, String> {
        let mut words = DelegationWords::default();
        value.split(':').try_for_each(|word| words.take(word))?;
        let all = words.together()?;
        if all.writers.is_none() && all.grants != DirectoryGrants::Never {
            return Err(format!(
                "without sole-writer, local or local-late no directory is delegated: write \
                 {value}:sole-writer if only this server changes the directories, {value}:local if \
                 programs of this machine do"
            ));
        }
        Ok(all)
    }

    /// Returns whether any directory may be delegated.
    #[must_use]
    pub fn are_granted(&self) -> bool {
        self.writers.is_some() && self.grants != DirectoryGrants::Never
    }

    /// Returns how delegated directories must be held against programs of this machine; `None` if
    /// there are none, or no directory is delegated.
    #[must_use]
    pub fn hold(&self) -> Option<DirectoryHold> {
        self.writers.filter(|_| self.are_granted()).and_then(DirectoryWriters::hold)
    }
}

/// The words of a value that were read so far.
#[derive(Default)]
struct DelegationWords {
    grants: Option<DirectoryGrants>,
    writers: Option<DirectoryWriters>,
    recall_only: Option<()>,
    notifications_max: Option<u32>,
    delay_seconds_max: Option<u32>,
}

impl DelegationWords {
    fn take(&mut self, word: &str) -> Result<(), String> {
        if let Some(number) = word.strip_prefix("notifications=") {
            return once(&mut self.notifications_max, "notifications", notifications(number)?);
        }
        if let Some(number) = word.strip_prefix("delay=") {
            return once(&mut self.delay_seconds_max, "delay", delay(number)?);
        }
        if word == "recall-only" {
            return once(&mut self.recall_only, word, ());
        }
        match DirectoryWriters::ALL.into_iter().find(|writers| writers.name() == word) {
            Some(writers) => self.take_writers(writers),
            None => self.take_policy(word),
        }
    }

    fn take_writers(&mut self, writers: DirectoryWriters) -> Result<(), String> {
        match self.writers.replace(writers) {
            None => Ok(()),
            Some(other) if other == writers => Err(format!("{} stands twice", other.name())),
            Some(_) => Err("expected one of sole-writer, local and local-late".into()),
        }
    }

    fn take_policy(&mut self, word: &str) -> Result<(), String> {
        let found = DirectoryGrants::ALL.into_iter().find(|grants| grants.name() == word);
        let found = found.ok_or_else(|| {
            format!(
                "unknown word {word:?}: expected sole-writer, local or local-late, recall-only, \
                 notifications=NUMBER, delay=SECONDS, and never, always, second-ask or adaptive"
            )
        })?;
        if self.grants.replace(found).is_some() {
            return Err("expected one of never, always, second-ask and adaptive".into());
        }
        Ok(())
    }

    fn together(self) -> Result<DirectoryDelegations, String> {
        let bounds_notifications =
            self.notifications_max.is_some() || self.delay_seconds_max.is_some();
        if self.recall_only.is_some() && bounds_notifications {
            return Err("with recall-only there are no notifications: leave one of them out".into());
        }
        Ok(DirectoryDelegations {
            grants: self.grants.unwrap_or_default(),
            writers: self.writers,
            recall_only: self.recall_only.is_some(),
            notifications_max: self.notifications_max.unwrap_or(NOTIFICATIONS_DEFAULT),
            delay_seconds_max: self.delay_seconds_max,
        })
    }
}

fn once<T>(place: &mut Option<T>, word: &str, value: T) -> Result<(), String> {
    if place.replace(value).is_some() {
        return Err(format!("{word} stands twice"));
    }
    Ok(())
}

fn delay(number: &str) -> Result<u32, String> {
    let parsed = number.parse().ok().filter(|parsed| *parsed <= NOTIFICATION_DELAY_MAX);
    parsed.ok_or_else(|| {
        format!("delay={number}: expected seconds from 0 to {NOTIFICATION_DELAY_MAX}")
    })
}

fn notifications(number: &str) -> Result<u32, String> {
    let parsed = number.parse().ok().filter(|parsed| (1..=NOTIFICATIONS_MAX).contains(parsed));
    parsed.ok_or_else(|| {
        format!("notifications={number}: expected a number from 1 to {NOTIFICATIONS_MAX}")
    })
}

/// Formats the setting as the value of `dir_delegations=`.
impl fmt::Display for DirectoryDelegations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.grants.name())?;
        if let Some(writers) = self.writers {
            write!(f, ":{}", writers.name())?;
        }
        f.write_str(if self.recall_only { ":recall-only" } else { "" })?;
        if self.notifications_max != NOTIFICATIONS_DEFAULT {
            write!(f, ":notifications={}", self.notifications_max)?;
        }
        match self.delay_seconds_max {
            None => Ok(()),
            Some(seconds) => write!(f, ":delay={seconds}"),
        }
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
            "adaptive:local",
            "second-ask:local-late:notifications=1",
            "second-ask:sole-writer:notifications=1",
            "second-ask:sole-writer:notifications=1:delay=0",
            "second-ask:sole-writer:delay=60",
        ] {
            assert_eq!(DirectoryDelegations::parse(value).unwrap().to_string(), value);
        }
        let short = DirectoryDelegations::parse("sole-writer").unwrap();
        assert_eq!(short.to_string(), "second-ask:sole-writer");
        assert!(short.are_granted());
        assert_eq!(short.hold(), None);
        assert_eq!((short.notifications_max, short.delay_seconds_max), (64, None));
        let more = DirectoryDelegations::parse("notifications=1024:sole-writer").unwrap();
        assert_eq!(more.notifications_max, 1024);
        assert!(!DirectoryDelegations::parse("sole-writer:never").unwrap().are_granted());
        assert!(!DirectoryDelegations::default().are_granted());
        for (value, hold) in [
            ("local", Some(DirectoryHold::Wait)),
            ("local-late", Some(DirectoryHold::Late)),
            ("never:local-late", None),
        ] {
            assert_eq!(DirectoryDelegations::parse(value).unwrap().hold(), hold, "{value}");
        }
    }

    #[test]
    fn useless_and_contradictory_values_are_refused() {
        for (value, told) in [
            ("always", "without sole-writer"),
            ("", "unknown word \"\""),
            ("sometimes", "unknown word \"sometimes\""),
            ("never:always", "expected one of"),
            ("sole-writer:sole-writer", "stands twice"),
            ("local:local-late", "expected one of sole-writer"),
            ("local:sole-writer", "expected one of sole-writer"),
            ("sole-writer:recall-only:recall-only", "stands twice"),
            ("sole-writer:notifications=0", "1 to 1024"),
            ("sole-writer:notifications=1025", "1 to 1024"),
            ("sole-writer:notifications=", "1 to 1024"),
            ("sole-writer:notifications=2:notifications=2", "stands twice"),
            ("sole-writer:notifications=2:recall-only", "leave one of them out"),
            ("sole-writer:delay=61", "0 to 60"),
            ("sole-writer:delay=-1", "0 to 60"),
            ("sole-writer:delay=2:delay=2", "stands twice"),
            ("sole-writer:delay=2:recall-only", "leave one of them out"),
        ] {
            let error = DirectoryDelegations::parse(value).unwrap_err();
            assert!(error.contains(told), "{value}: {error}");
        }
    }
}
