//! The events of a trace.

/// The actor of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    /// A client, by its number.
    Client(u32),
    /// A program on the server.
    Local,
}

/// An action of an actor at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since the trace began.
    pub at_microseconds: u64,
    /// The actor.
    pub actor: Actor,
    /// The action.
    pub action: Action,
}

/// An action on a directory, whose name is a path or the hex of a filehandle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A name is looked up.
    Lookup {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
        /// True if the name exists.
        found: bool,
    },
    /// The directory is listed.
    List(String),
    /// The attributes of the directory are asked for.
    Stat(String),
    /// A name is added to the directory.
    Create {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
    },
    /// A name is removed from the directory.
    Remove {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
    },
    /// A name is moved from one directory to another, or within one.
    Rename {
        /// The old directory and name.
        from: (String, String),
        /// The new directory and name.
        to: (String, String),
    },
}

impl Event {
    /// The directories and names of the action, with whether each name is there before it, as far
    /// as the action tells.
    pub(super) fn before(&self) -> Vec<(&str, Option<&str>, bool)> {
        match &self.action {
            Action::Lookup { directory, name, found } => vec![(directory, Some(name), *found)],
            Action::List(directory) | Action::Stat(directory) => vec![(directory, None, false)],
            Action::Create { directory, name } => vec![(directory, Some(name), false)],
            Action::Remove { directory, name } => vec![(directory, Some(name), true)],
            Action::Rename { from, to } => {
                vec![(&from.0, Some(&from.1), true), (&to.0, Some(&to.1), false)]
            }
        }
    }
}
