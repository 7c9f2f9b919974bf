//! The one place where a [`Node`] is made: of the root, or of what the cloak shows the caller.

use comity_grants::Operation;
use comity_vfs::{Attr, Disk, Handle, Result, Status, Wire};

use super::View;

/// An object whose handle came off the wire, not let in yet: it can only be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Outside(Handle);

impl Outside {
    #[inline(always)]
    pub(super) const fn new(handle: Handle) -> Self {
        Self(handle)
    }
}

/// An object that this view has let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node(Handle);

impl Node {
    /// The backend's handle. With the export it identifies the object in the state of clients.
    #[must_use]
    #[inline(always)]
    pub const fn handle(&self) -> &Handle {
        &self.0
    }
}

/// An object as the caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The object.
    pub node: Node,
    /// Its attributes.
    pub attr: Attr<Wire>,
}

impl View<'_> {
    /// The export's top, which is never hidden.
    pub(crate) fn root(&self) -> Node {
        Node(self.fs().root())
    }

    /// The attributes of an object that is still outside.
    ///
    /// # Errors
    /// [`Status`]; [`Status::Stale`] if the caller may not know of it.
    #[inline(always)]
    pub fn look(&self, object: &Outside) -> Result<Attr<Wire>> {
        // Looked at where they are: they are not to be carried past what is decided about them.
        let found = self.fs().getattr(&object.0);
        let attr = found.as_ref().map_err(|status| *status)?;
        self.judge(&object.0, attr, Status::Stale)?;
        Ok(self.attr_out(attr))
    }

    /// The same for a caller that goes on with the object.
    ///
    /// # Errors
    /// [`Status`]; [`Status::Stale`] if the caller may not know of it.
    pub fn look_closely(&self, object: &Outside) -> Result<Seen> {
        Ok(Seen { attr: self.look(object)?, node: Node(object.0) })
    }

    /// Lets in an object whose handle came off the wire. The root is not looked at.
    #[inline]
    pub(super) fn let_in(&self, Outside(handle): Outside) -> Result<Node> {
        if self.is_guarded() && handle != self.fs().root() {
            self.judge(&handle, &self.fs().getattr(&handle)?, Status::Stale)?;
        }
        Ok(Node(handle))
    }

    /// An object that was found, or `otherwise` if the caller may not know of it.
    #[inline(always)]
    pub(super) fn seen_or(&self, node: &comity_vfs::Node<Disk>, otherwise: Status) -> Result<Seen> {
        self.judge(&node.handle, &node.attr, otherwise)?;
        // Attributes first: a copy that waits for another is made twice.
        let attr = self.attr_out(&node.attr);
        Ok(Seen { attr, node: Node(node.handle) })
    }

    /// Refuses an object that the caller may not know of.
    #[inline(always)]
    fn judge(&self, handle: &Handle, attr: &Attr<Disk>, otherwise: Status) -> Result<()> {
        if !self.is_guarded() || self.knows(handle, attr) {
            return Ok(());
        }
        self.refuse(handle, otherwise)
    }

    /// Returns whether the caller may know of an object. It is asked where some objects are hidden.
    #[inline(always)]
    pub(super) fn knows(&self, handle: &Handle, attr: &Attr<Disk>) -> bool {
        match self.resolved.is_by_right() {
            true => self.knows_by_right(handle, attr),
            false => self.shows(self.cred(), attr),
        }
    }

    /// Returns whether a caller who acts by grants may know of an object: by what was granted to
    /// it, and by the cloak under the ids that it acts under. Where the export wants a key and the
    /// caller proved none, as where NFSv3 is mounted in clear, it knows the root and nothing else.
    #[cold]
    fn knows_by_right(&self, handle: &Handle, attr: &Attr<Disk>) -> bool {
        let pass = |holder| self.pass(holder, handle, Operation::Look).unwrap_or_default();
        let cred = self.resolved.holder().and_then(pass);
        cred.is_some_and(|cred| !self.is_cloaked() || self.shows(cred, attr))
    }

    #[cold]
    fn refuse(&self, handle: &Handle, otherwise: Status) -> Result<()> {
        if *handle == self.fs().root() {
            return Ok(());
        }
        self.resolved.counters().hide(1);
        Err(otherwise)
    }
}
