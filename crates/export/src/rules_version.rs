//! The version of the rules that a caller was resolved by.

/// Tells the versions of all that a resolved caller depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RulesVersion {
    /// The generation of the plan.
    pub(crate) plan: u64,
    /// The number of changes of accounts and credentials, for a peer that has proved a key.
    pub(crate) grants: u64,
}
