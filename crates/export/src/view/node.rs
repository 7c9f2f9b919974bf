//! The only module that makes a [`Node`]: of the root, or of an object that is visible to the
//! caller.

use comity_grants::Operation;
use comity_vfs::{Attr, Cred, Disk, Handle, Result, Status, Wire};

use super::View;

/// An object whose handle came from the wire and that is not admitted yet: only its attributes can
/// be read.
#[derive(Debug, Clone, Copy)]
pub struct Outside(Handle);

impl Outside {
    #[inline(always)]
    pub(super) const fn new(handle: Handle) -> Self {
        Self(handle)
    }
}

/// An object that this view has admitted.
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
    /// Returns the export's top directory, which is never hidden.
    pub(crate) fn root(&self) -> Node {
        Node(self.fs().root())
    }

    /// Returns the attributes of an object that is not admitted yet.
    ///
    /// # Errors
    /// [`Status`]; [`Status::Stale`] if the object is hidden from the caller.
    #[inline(always)]
    pub fn look(&self, object: &Outside) -> Result<Attr<Wire>> {
        // The attributes are borrowed: a copy of them around the checks would be slow.
        let found = self.fs().getattr(&object.0);
        let attr = found.as_ref().map_err(|status| *status)?;
        self.judge(&object.0, attr, Status::Stale)?;
        Ok(self.attr_out(attr))
    }

    /// Returns the attributes of an object, and admits it, for a caller that continues with it.
    ///
    /// # Errors
    /// [`Status`]; [`Status::Stale`] if the object is hidden from the caller.
    pub fn look_closely(&self, object: &Outside) -> Result<Seen> {
        Ok(Seen { attr: self.look(object)?, node: Node(object.0) })
    }

    /// Admits an object whose handle came from the wire. The root is not checked.
    #[inline]
    pub(super) fn let_in(&self, Outside(handle): Outside) -> Result<Node> {
        if self.is_guarded() && handle != self.fs().root() {
            self.judge_guarded(&handle)?;
        }
        Ok(Node(handle))
    }

    /// Returns an error if an object is hidden from the caller. A right to the object does not
    /// depend on its attributes, so they are read only if the cloak may hide it.
    #[inline(never)]
    fn judge_guarded(&self, handle: &Handle) -> Result<()> {
        if self.has_cloak() || !self.resolved.is_by_right() {
            return self.judge(handle, &self.fs().getattr(handle)?, Status::Stale);
        }
        match self.ids_by_right(handle) {
            Some(_) => Ok(()),
            None => self.refuse(handle, Status::Stale),
        }
    }

    /// Returns an object that was found, or the error `otherwise` if it is hidden from the caller.
    #[inline(always)]
    pub(super) fn seen_or(&self, node: &comity_vfs::Node<Disk>, otherwise: Status) -> Result<Seen> {
        self.judge(&node.handle, &node.attr, otherwise)?;
        // The attributes come first: a copy that waits for another is made twice.
        let attr = self.attr_out(&node.attr);
        Ok(Seen { attr, node: Node(node.handle) })
    }

    /// Returns the error `otherwise` if an object is hidden from the caller.
    #[inline(always)]
    fn judge(&self, handle: &Handle, attr: &Attr<Disk>, otherwise: Status) -> Result<()> {
        if !self.is_guarded() || self.knows(handle, attr) {
            return Ok(());
        }
        self.refuse(handle, otherwise)
    }

    /// Returns whether an object is visible to the caller. It is called only if some objects are
    /// hidden.
    #[inline(always)]
    pub(super) fn knows(&self, handle: &Handle, attr: &Attr<Disk>) -> bool {
        match self.resolved.is_by_right() {
            true => self.knows_by_right(handle, attr),
            false => self.shows(self.cred(), attr),
        }
    }

    /// Returns whether an object is visible to a caller who acts by grants: by a grant, and by the
    /// cloak for the ids under which it acts. If the export requires a key and the caller proved
    /// none, as when NFSv3 is mounted in clear, only the root is visible.
    #[cold]
    fn knows_by_right(&self, handle: &Handle, attr: &Attr<Disk>) -> bool {
        let cred = self.ids_by_right(handle);
        cred.is_some_and(|cred| !self.has_cloak() || self.shows(cred, attr))
    }

    /// Returns whether the export has a cloak. The caller's own ids do not matter, not even if they
    /// are those of root.
    pub(super) fn has_cloak(&self) -> bool {
        !self.rules().cloak.is_empty()
    }

    /// Returns the ids under which the caller may look at an object by a grant.
    fn ids_by_right(&self, handle: &Handle) -> Option<&Cred<Disk>> {
        let pass = |holder| self.pass(holder, handle, Operation::Look).unwrap_or_default();
        self.resolved.holder().and_then(pass)
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
