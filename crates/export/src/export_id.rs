/// The number of an export. It is part of every handle, so it stays the same over restarts and
/// reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExportId(pub u32);

impl ExportId {
    /// The number in handles of the tree above the exports; no export has it.
    pub(crate) const PSEUDO: Self = Self(u32::MAX);
}
