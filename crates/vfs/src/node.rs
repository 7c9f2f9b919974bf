use crate::{Attr, Handle, IdDomain};

/// An object: its handle and its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node<S: IdDomain> {
    /// Its handle.
    pub handle: Handle,
    /// Its attributes.
    pub attr: Attr<S>,
}
