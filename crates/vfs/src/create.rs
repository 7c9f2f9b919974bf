use crate::{IdDomain, SetAttr};

/// The mode of creating a regular file (RFC 1813, 3.3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create<S: IdDomain> {
    /// An existing file of that name is used as it is, except that its size is changed if `set`
    /// gives one.
    Unchecked(SetAttr<S>),
    /// An existing file of that name causes [`Status::Exist`](crate::Status::Exist).
    Guarded(SetAttr<S>),
    /// An existing file of that name causes [`Status::Exist`](crate::Status::Exist), unless it was
    /// made with the same verifier: the call is a retry then. The verifier outlives a restart.
    Exclusive([u8; 8]),
}
