use crate::{Handle, Status};

/// A page of a directory whose files' data files were labelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledPage {
    /// The directories on the page, with their names.
    pub directories: Vec<(Box<[u8]>, Handle)>,
    /// The number of placed files on the page, without those that failed.
    pub files: u64,
    /// The number of labels that were missing or old, and were written.
    pub labels: u64,
    /// The names of the files that failed.
    pub failed: Vec<(Box<[u8]>, Status)>,
    /// The cookie at which the next page begins; `None` if this is the last one.
    pub next: Option<u64>,
}

/// The way in which places are rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebuild<'r> {
    /// The name of the placement in the labels that count; `None` for its name now.
    pub of: Option<&'r [u8]>,
    /// Names of data files that are left as they are, because several have one path.
    pub except: &'r [String],
    /// False if nothing is changed, and the outcomes are those that would be.
    pub changes: bool,
}

/// A page of data files that were compared with the files that their labels name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltPage {
    /// The data files on the page.
    pub files: Vec<RebuiltFile>,
    /// The cookie at which the next page begins; `None` if this is the last one.
    pub next: Option<u64>,
}

/// A data file that was compared with the file that its label names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltFile {
    /// Its name on the data server.
    pub stored_name: Box<[u8]>,
    /// The path of the file in its label, without a slash at the start; the name of the placement
    /// if that is another one. It is empty if it is not known.
    pub path: Box<[u8]>,
    /// The change that was made, or the reason why there was none.
    pub outcome: RebuildOutcome,
}

/// The outcome of a rebuild for a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildOutcome {
    /// Nothing: its file already has this place.
    Kept,
    /// Its file has got its place back.
    Placed,
    /// Its file was gone and was created.
    Created,
    /// Nothing, for this reason.
    Left(NotRebuilt),
}

/// The reason why a data file was left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRebuilt {
    /// It has no label.
    NoLabel,
    /// Its label was not written for it with the key of the placement.
    ForeignLabel,
    /// Its label is of another placement.
    OtherPlacement,
    /// Its label names no path, and the file from which the label was written is gone.
    NoPath,
    /// Nothing has its path, and the file from which the label was written has an unknown name.
    Elsewhere,
    /// A file that is not in the export has its bytes.
    InUse,
    /// Its path is that of other data files, too, and nothing tells which are the newer ones.
    SharedPath,
    /// Its path is that of an object that is not a regular file.
    OtherObject,
    /// Its path is that of another owner's file.
    OtherOwner,
    /// Its file has another place.
    OtherPlace,
    /// The metadata server itself has bytes of its file.
    OwnData,
    /// A verb failed.
    Failed(Status),
}

impl From<Status> for NotRebuilt {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}
