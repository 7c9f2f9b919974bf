use std::sync::Arc;

use comity_vfs::{NamedObject, NoticedAttributes};

use crate::Share;

/// Bytes of a notification beside its names and handles: masks, lengths and attributes, each at its
/// longest.
const REST_BYTES: usize = 320;

/// Bytes of a handle as clients get it.
const HANDLE_BYTES: usize = 64;

/// A change of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotedChange {
    /// A name was made.
    Added {
        /// The name.
        name: Box<[u8]>,
        /// Its object.
        object: NamedObject,
        /// True if another object had the name before.
        replaces: bool,
    },
    /// A name was removed.
    Removed {
        /// The name.
        name: Box<[u8]>,
    },
    /// A name was replaced by another one in the same directory.
    Renamed {
        /// The old name.
        from: Box<[u8]>,
        /// The new name.
        name: Box<[u8]>,
        /// Its object.
        object: NamedObject,
        /// True if another object had the new name before.
        replaces: bool,
    },
    /// Attributes of the directory were set.
    Attributes,
}

/// A change of a directory of which holders of its delegations are notified (RFC 8881, 20.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryNotice {
    /// The change.
    pub change: NotedChange,
    /// The attributes of the directory afterwards, if they are known.
    pub after: Option<NoticedAttributes>,
}

impl NotedChange {
    /// Returns the kind of the change, as a bit of a [`Share`].
    const fn kind(&self) -> u32 {
        match self {
            Self::Added { .. } => Share::ADDED,
            Self::Removed { .. } => Share::REMOVED,
            Self::Renamed { .. } => Share::RENAMED,
            Self::Attributes => Share::ATTRIBUTES,
        }
    }
}

impl DirectoryNotice {
    /// Returns the most bytes that the notification takes in a call.
    pub(crate) const fn bytes(&self) -> usize {
        let names = match &self.change {
            NotedChange::Added { name, replaces, .. } => name.len() * if *replaces { 2 } else { 1 },
            NotedChange::Removed { name } => name.len(),
            NotedChange::Renamed { from, name, .. } => from.len() + 2 * name.len(),
            NotedChange::Attributes => 0,
        };
        names + HANDLE_BYTES + REST_BYTES
    }
}

/// The notifications that a client has asked for with a directory delegation, and their bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeWishes {
    /// The changes of which it is notified, as bits [`Share::ADDED`] and the others. Changes of
    /// other kinds recall the delegation.
    pub kinds: u32,
    /// True if it wants the handle of an object that got a name.
    pub handles: bool,
    /// True if it wants the number of an object that got a name.
    pub fileids: bool,
    /// True if it wants the type of an object that got a name.
    pub types: bool,
    /// The attributes of the directory that it wants with each change, as bits of
    /// [`NoticeWishes::CHANGE`] and the others.
    pub directory: u8,
    /// Most bytes of notifications in one call.
    pub bytes_max: usize,
    /// Most notifications that the client has not acknowledged, a bound of the export. A client
    /// that has as many is too slow: the next change recalls the delegation. Each takes about 200
    /// bytes.
    pub unacknowledged_max: usize,
}

impl NoticeWishes {
    /// The change attribute.
    pub const CHANGE: u8 = 1;
    /// The size.
    pub const SIZE: u8 = 2;
    /// The number of links.
    pub const LINKS: u8 = 4;
    /// The space used.
    pub const USED: u8 = 8;
    /// The time of the last access.
    pub const ATIME: u8 = 64;
    /// The time of the last change of the attributes.
    pub const CTIME: u8 = 16;
    /// The time of the last change of the names.
    pub const MTIME: u8 = 32;

    /// Returns the bits of [`NoticeWishes::kinds`] for settings of attributes of a directory, of
    /// which a client that wants these attributes can be told everything.
    #[must_use]
    pub const fn kinds_of_settings(directory: u8) -> u32 {
        if directory & Self::CHANGE == 0 || directory & Self::CTIME == 0 {
            return 0;
        }
        let accessed = if directory & Self::ATIME == 0 { 0 } else { Share::ACCESSED };
        let modified = if directory & Self::MTIME == 0 { 0 } else { Share::MODIFIED };
        Share::ATTRIBUTES | accessed | modified
    }

    /// Returns whether the client is notified of all these changes.
    pub(crate) const fn has(&self, told: u32) -> bool {
        told & !self.kinds == 0
    }

    /// Returns whether the client is notified of a change.
    pub(crate) const fn has_kind_of(&self, notice: &DirectoryNotice) -> bool {
        self.has(notice.change.kind())
    }
}

/// Notifications of one call, in the order of the changes.
pub type NoticeBatch = Arc<[Arc<DirectoryNotice>]>;
