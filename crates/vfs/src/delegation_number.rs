/// The number of one delegation. A file or a directory that is delegated again later has another
/// number, so that what was known before is not taken for true under the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DelegationNumber(pub u64);
