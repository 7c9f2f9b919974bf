use crate::{Attr, DelegationNumber, Handle, IdDomain, Time};

/// A change of a delegated directory by another client, of which the server has notified this one
/// (RFC 8881, 20.4). The delegation stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryNotice {
    /// The directory.
    pub dir: Handle,
    /// The delegation under which the change was notified.
    pub grant: DelegationNumber,
    /// The change.
    pub change: NoticedChange,
    /// Attributes of the directory after the change, if the server sent them.
    pub after: Option<NoticedAttributes>,
}

/// A change of a directory. The server may leave out the handle and the fileid of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticedChange {
    /// A name was added, or now names another object.
    Added {
        /// The name.
        name: Box<[u8]>,
        /// Its object.
        object: NoticedObject,
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
        object: NoticedObject,
    },
    /// Attributes of the directory were changed, and no names.
    Attributes,
}

/// The object of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoticedObject {
    /// The object.
    pub node: Option<Handle>,
    /// Its number.
    pub fileid: Option<u64>,
}

/// Attributes of a directory of which a client can be notified. None of them is an id, so that they
/// are the same for all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticedAttributes {
    /// The change attribute.
    pub change: u64,
    /// The size in bytes.
    pub size: u64,
    /// The number of links.
    pub links: u32,
    /// The space used, in bytes.
    pub used: u64,
    /// The time of the last access.
    pub atime: Time,
    /// The time of the last change of the attributes.
    pub ctime: Time,
    /// The time of the last change of the names.
    pub mtime: Time,
}

impl NoticedAttributes {
    /// Returns those of an object.
    #[must_use]
    pub const fn of<S: IdDomain>(attr: &Attr<S>) -> Self {
        Self {
            change: attr.change,
            size: attr.size,
            links: attr.links,
            used: attr.used,
            atime: attr.atime,
            ctime: attr.ctime,
            mtime: attr.mtime,
        }
    }
}
