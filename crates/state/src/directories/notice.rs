use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{NamedObject, NoticedAttributes};

use crate::FileKey;

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
    /// Attributes of an object in the directory were changed.
    Child {
        /// The name by which the holder knows it.
        name: Arc<[u8]>,
        /// The object.
        key: FileKey,
        /// Its attributes. The shell reads them, and leaves out objects that are gone.
        attributes: Option<ChildAttributes>,
    },
}

/// A name in a directory, and its object.
pub(crate) type Child = (Arc<[u8]>, FileKey);

/// Attributes of an object in a directory, of which holders of the directory are notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildAttributes {
    /// The object.
    pub object: NamedObject,
    /// The attributes that change.
    pub rest: NoticedAttributes,
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
    /// Returns the kind of the change, as a bit of [`NoticeWishes::kinds`].
    const fn kind(&self) -> u32 {
        match self {
            Self::Added { .. } => NoticeWishes::ADDED,
            Self::Removed { .. } => NoticeWishes::REMOVED,
            Self::Renamed { .. } => NoticeWishes::RENAMED,
            Self::Attributes => NoticeWishes::ATTRIBUTES,
            Self::Child { .. } => 0,
        }
    }
}

impl DirectoryNotice {
    /// Returns the most bytes that the notification takes in a call.
    pub(crate) fn bytes(&self) -> usize {
        let names = match &self.change {
            NotedChange::Added { name, replaces, .. } => name.len() * if *replaces { 2 } else { 1 },
            NotedChange::Removed { name } => name.len(),
            NotedChange::Renamed { from, name, .. } => from.len() + 2 * name.len(),
            NotedChange::Attributes => 0,
            NotedChange::Child { name, .. } => name.len(),
        };
        names + HANDLE_BYTES + REST_BYTES
    }

    /// Returns the notification of a changed child.
    pub(crate) fn of_child((name, key): Child) -> Arc<Self> {
        let change = NotedChange::Child { name, key, attributes: None };
        Arc::new(Self { change, after: None })
    }

    /// Returns the most bytes that the notification of a changed child takes in a call.
    pub(crate) const fn bytes_of_child(name: &[u8]) -> usize {
        name.len() + HANDLE_BYTES + REST_BYTES
    }
}

/// The notifications that a client has asked for with a directory delegation, and their bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeWishes {
    /// The changes of which it is notified, as bits [`NoticeWishes::ADDED`] and the others. Changes
    /// of other kinds recall the delegation.
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
    /// The attributes of objects in the directory of whose changes it wants to be notified, as the
    /// same bits; 0 if it is not notified.
    pub children: u8,
    /// The longest time from a change of such an attribute to the notification.
    pub child_delay: Duration,
    /// Most bytes of notifications in one call.
    pub bytes_max: usize,
    /// Most notifications that the client has not acknowledged, a bound of the export. A client
    /// that has as many is too slow: the next change recalls the delegation. Each takes about 200
    /// bytes.
    pub unacknowledged_max: usize,
}

impl NoticeWishes {
    /// A name is added.
    pub const ADDED: u32 = 4;
    /// A name is removed.
    pub const REMOVED: u32 = 8;
    /// A name is replaced by another one in the same directory.
    pub const RENAMED: u32 = 16;
    /// Attributes of the directory are set, with the change attribute and the ctime, and beside
    /// these none but those of the following two bits.
    pub const ATTRIBUTES: u32 = 32;
    /// The time of the last access is set.
    pub const ACCESSED: u32 = 64;
    /// The time of the last change of the names is set.
    pub const MODIFIED: u32 = 128;
    /// All of these.
    pub(crate) const KINDS: u32 = Self::ADDED
        | Self::REMOVED
        | Self::RENAMED
        | Self::ATTRIBUTES
        | Self::ACCESSED
        | Self::MODIFIED;

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
        let accessed = if directory & Self::ATIME == 0 { 0 } else { NoticeWishes::ACCESSED };
        let modified = if directory & Self::MTIME == 0 { 0 } else { NoticeWishes::MODIFIED };
        NoticeWishes::ATTRIBUTES | accessed | modified
    }

    /// Returns whether the client is notified of all these changes.
    pub(crate) const fn has(&self, told: u32) -> bool {
        told & !self.kinds == 0
    }

    /// Returns whether the client wants attributes of the directory that are not known.
    pub(crate) const fn misses_attributes(&self, notice: &DirectoryNotice) -> bool {
        self.directory != 0 && notice.after.is_none()
    }

    /// Returns whether the client is notified of a change.
    pub(crate) const fn has_kind_of(&self, notice: &DirectoryNotice) -> bool {
        self.has(notice.change.kind())
    }
}

/// Notifications of one call, in the order of the changes.
pub type NoticeBatch = Arc<[Arc<DirectoryNotice>]>;
