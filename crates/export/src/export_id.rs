/// The number of an export: in every handle, so the same over restarts and reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExportId(pub u32);

impl ExportId {
    /// The number under which handles of the tree above the exports are sealed; no export has it.
    pub(crate) const PSEUDO: Self = Self(u32::MAX);
}
