use crate::{Attr, Handle, IdDomain};

/// An object: what to call it and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node<S: IdDomain> {
    /// Its handle.
    pub handle: Handle,
    /// Its attributes.
    pub attr: Attr<S>,
}
