/// The outcome for a submitted credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is held from now on.
    Held,
    /// It was held before.
    Known,
    /// It was revoked.
    Revoked,
    /// It has ended.
    Ended,
    /// No account here leads to its signer by the credentials that came with it or are held.
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
