use crate::{Handle, Status};

/// A page of a directory whose placed files were compared with their data servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedPage {
    /// The directories on the page, with their names.
    pub directories: Vec<(Box<[u8]>, Handle)>,
    /// The placed files on the page.
    pub files: Vec<CheckedFile>,
    /// The cookie at which the next page begins; `None` if this is the last one.
    pub next: Option<u64>,
}

/// A placed file that was compared with its data servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedFile {
    /// Its name in the directory.
    pub name: Box<[u8]>,
    /// Its handle.
    pub handle: Handle,
    /// Its number.
    pub fileid: u64,
    /// Its name on every data server; `None` if that is unknown because its place is damaged.
    pub stored_name: Option<Box<str>>,
    /// The names of its data servers; empty if they are unknown.
    pub servers: Vec<Box<str>>,
    /// The faults, with the data servers that they are about; without a data server, a fault is
    /// about all of them.
    pub faults: Vec<(Option<Box<str>>, StripeFault)>,
}

/// A disagreement between a placed file and a data server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StripeFault {
    /// The data server has no data file, which must have this many bytes.
    Missing(u64),
    /// The data file is shorter than it must be.
    Short {
        /// The bytes that it has.
        has: u64,
        /// The bytes that it must have.
        needs: u64,
    },
    /// The data file extends beyond the end of the placed file.
    Long {
        /// The bytes that it has.
        has: u64,
        /// The size of the placed file.
        size: u64,
    },
    /// The name of the data file is that of another kind of object.
    NoFile,
    /// The placement has no data server of this name.
    UnknownServer,
    /// The extended attribute with the place was not written for this file.
    DamagedPlace,
    /// The mirror on the data server is not used, because it was found broken.
    BrokenMirror,
    /// The file has been given fewer mirrors than the placement asks for.
    FewMirrors {
        /// The mirrors that it has.
        has: usize,
        /// The mirrors of new files.
        wants: usize,
    },
    /// The data file could not be looked at.
    Unchecked(Status),
}

/// A page of the names of data files on one data server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPage {
    /// The names.
    pub names: Vec<Box<[u8]>>,
    /// The cookie at which the next page begins; `None` if this is the last one.
    pub next: Option<u64>,
}
