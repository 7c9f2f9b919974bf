/// The number of one delegation. A later delegation of the same file or directory has another
/// number, so that data cached under the earlier one are not used under the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DelegationNumber(pub u64);
