use crate::{FileKey, FileType};

/// An object that got a name in a directory, as holders of the directory are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedObject {
    /// The object.
    pub key: FileKey,
    /// Its number.
    pub fileid: u64,
    /// Its type.
    pub file_type: FileType,
}
