/// Space and inodes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Total size in bytes.
    pub bytes_total: u64,
    /// Free bytes.
    pub bytes_free: u64,
    /// Free bytes the caller may use.
    pub bytes_available: u64,
    /// Total number of objects.
    pub files_total: u64,
    /// Number of objects that can still be made.
    pub files_free: u64,
    /// Number of objects that the caller can still make.
    pub files_available: u64,
}
