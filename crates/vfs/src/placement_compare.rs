use crate::Status;

/// A range of a mirrored file whose mirrors were compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedRange {
    /// The ranges in which mirrors differ, in the order of their offsets.
    pub differing: Vec<DifferingRange>,
    /// The data servers whose mirrors could not be read, with the reasons.
    pub unread: Vec<(Box<str>, Status)>,
    /// The bytes of the file that were compared.
    pub bytes: u64,
    /// The offset at which the next range begins; `None` if the range was compared to its end.
    pub next: Option<u64>,
    /// The change attribute of the file before its mirrors were read.
    pub change: u64,
}

/// A range of a file in which mirrors differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferingRange {
    /// The offset of the first byte that differs.
    pub offset: u64,
    /// The number of bytes up to the last one that differs; some between them may be the same.
    pub length: u64,
    /// The names of the data servers; those that have the same bytes are together.
    pub groups: Vec<Vec<Box<str>>>,
}
