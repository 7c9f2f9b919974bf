use crate::{IdDomain, SetAttr};

/// The mode of creating a regular file (RFC 1813, 3.3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create<S: IdDomain> {
    /// A file of that name is taken as it is, but for its size if `set` gives one.
    Unchecked(SetAttr<S>),
    /// A file of that name is [`Status::Exist`](crate::Status::Exist).
    Guarded(SetAttr<S>),
    /// A file of that name is [`Status::Exist`](crate::Status::Exist) unless it was made with this
    /// same verifier, which outlives a restart: the call was a retry then.
    Exclusive([u8; 8]),
}
