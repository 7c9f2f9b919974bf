//! The events of a trace.

/// The doer of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    /// A client, by its number.
    Client(u32),
    /// A program on the server.
    Local,
}

/// A thing that is done at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since the trace began.
    pub at_microseconds: u64,
    /// The doer.
    pub actor: Actor,
    /// The thing that is done.
    pub action: Action,
}

/// A thing that is done to a directory, which has any name: a path or the hex of a filehandle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A name is looked up.
    Lookup {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
        /// True if the name is there.
        found: bool,
    },
    /// The directory is listed.
    List(String),
    /// The attributes of the directory are asked for.
    Stat(String),
    /// A name comes into the directory.
    Create {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
    },
    /// A name leaves the directory.
    Remove {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
    },
    /// A name leaves one directory and comes into another, or the same one.
    Rename {
        /// The old directory and name.
        from: (String, String),
        /// The new directory and name.
        to: (String, String),
    },
}
