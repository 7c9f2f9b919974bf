/// The outcome of submitting a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The key holds it from now on.
    Held,
    /// The key held it before.
    Known,
    /// It was revoked.
    Revoked,
    /// It has ended.
    Ended,
    /// Its signer has no rights: neither an account, nor credentials that lead from an account to
    /// it.
    NoAccount,
    /// It does not lead to the key that submitted it.
    NotYours,
}

impl Outcome {
    /// Returns whether the credential is held.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Held | Self::Known)
    }
}
