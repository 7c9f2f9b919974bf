//! A request enters a view by a handle, by a path, or by MOUNT.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use comity_credential::CredentialRef;
use comity_placement::PlacementKey;
use comity_vfs::{FileType, Result, Status};

use super::{Door, Node, Outside, View};
use crate::admission::{admit, admit_to_mount, locate};
use crate::{Plan, Refusal, RpcPeer};

impl<'a> View<'a> {
    /// Admits a request: finds its export, the rules for its caller, the ids under which it acts,
    /// and its first object.
    ///
    /// # Errors
    /// [`Refusal`]: the handle is not one of this server's or its export is gone, the export is not
    /// offered to the client, or its rules do not allow the port or the credential.
    #[inline]
    pub fn enter(
        plan: &'a Plan,
        visitor: &RpcPeer,
        credential: &CredentialRef<'_>,
        door: Door<'_>,
    ) -> std::result::Result<(Self, Node), Refusal> {
        match door {
            Door::Handle(sealed) => {
                let (view, object) = Self::approach(plan, visitor, credential, sealed)?;
                let node = view.let_in(object)?;
                Ok((view, node))
            }
            Door::Path(path) => Self::enter_path(plan, visitor, credential, (path, false)),
            Door::Mount(path) => Self::enter_path(plan, visitor, credential, (path, true)),
        }
    }

    /// Admits a request by a path, or by MOUNT. A MOUNT by a channel that the export does not take
    /// reaches the root only.
    #[inline(never)]
    fn enter_path(
        plan: &'a Plan,
        visitor: &RpcPeer,
        credential: &CredentialRef<'_>,
        (path, is_mount): (&[u8], bool),
    ) -> std::result::Result<(Self, Node), Refusal> {
        let (export, below) = locate(plan, visitor, path_of(path))?;
        let resolve = if is_mount { admit_to_mount } else { admit };
        let view = Self::of(plan, resolve(plan, visitor, credential, export.id())?).counted();
        if is_mount && !below.as_os_str().is_empty() && !view.takes(visitor) {
            return Err(Status::Acces.into());
        }
        let node = view.walk(below)?;
        Ok((view, node))
    }

    /// Admits a request that only asks for the attributes of an object. [`View::look`] checks the
    /// object later, with the attributes that it reads in any case.
    ///
    /// # Errors
    /// [`Refusal`].
    #[inline]
    pub fn approach(
        plan: &'a Plan,
        visitor: &RpcPeer,
        credential: &CredentialRef<'_>,
        sealed: &[u8],
    ) -> std::result::Result<(Self, Outside), Refusal> {
        if PlacementKey::claims_layout(sealed) {
            return Ok(Self::approach_by_layout(plan, sealed)?);
        }
        let (id, handle) = plan.key().open(sealed)?;
        let view = Self::of(plan, admit(plan, visitor, credential, id)?).counted();
        Ok((view, Outside::new(handle)))
    }

    /// Returns whether the export may be used by the channel of this peer.
    fn takes(&self, visitor: &RpcPeer) -> bool {
        self.rules().channels.take(visitor.channel().kind())
    }

    #[inline]
    fn counted(self) -> Self {
        if self.resolved.caller().is_squashed() {
            self.resolved.counters().squash();
        }
        self
    }

    /// Walks down from the export's root as the caller, who needs the right to search each
    /// directory.
    fn walk(&self, below: &Path) -> Result<Node> {
        let mut node = self.root();
        for component in below.components() {
            let Component::Normal(name) = component else { return Err(Status::Inval) };
            let (found, _) = self.lookup(&node, name.as_bytes())?;
            if found.attr.file_type == FileType::Symlink {
                return Err(Status::NotDir);
            }
            node = found.node;
        }
        Ok(node)
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
