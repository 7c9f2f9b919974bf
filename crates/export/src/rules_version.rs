//! The version of the rules by which a caller was resolved.

/// The versions of all data on which a resolved caller depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RulesVersion {
    /// The generation of the plan.
    pub(crate) plan: u64,
    /// The number of changes of accounts and credentials, for a peer that has proved a key.
    pub(crate) grants: u64,
}
