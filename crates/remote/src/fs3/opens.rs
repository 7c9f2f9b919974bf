//! Opens. Version 3 has no OPEN, so an open asks for the caller's rights and the current
//! attributes; so it sees what others wrote before they closed the file (close-to-open).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use comity_proto::nfs3::procedure;
use comity_vfs::{
    Access, Change, Changed, Create, Cred, DelegationKind, DelegationNumber, Disk, FileType,
    Handle, HeldLock, LockOutcome, LockRequest, Name, Node, OpenAccess, OpenEvent, OpenFiles,
    OpenId, OpenedFile, Result, SetAttr, SetTime, Status,
};
use rustix::rand::{GetRandomFlags, getrandom};

use super::names::NamePlace;
use super::remote3::Remote3;
use crate::compound::OpenOwner;
use crate::limits::OPENS_MAX;

/// The opens of a mount.
#[derive(Debug, Default)]
pub(super) struct OpenTable(Mutex<NumberedOpens>);

#[derive(Debug, Default)]
struct NumberedOpens {
    /// The file and its opener.
    files: HashMap<u64, (Handle, Arc<OpenOwner>)>,
    last: u64,
}

impl OpenTable {
    /// Adds an open.
    ///
    /// # Errors
    /// [`Status::Delay`] if there are too many.
    fn add(&self, node: Handle, caller: Arc<OpenOwner>) -> Result<OpenId> {
        let mut opens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if opens.files.len() >= OPENS_MAX {
            return Err(Status::Delay);
        }
        opens.last += 1;
        let open = opens.last;
        opens.files.insert(open, (node, caller));
        Ok(OpenId(open))
    }

    /// The file of an open, and its opener.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if there is no such open.
    pub(super) fn opened(&self, open: OpenId) -> Result<(Handle, Arc<OpenOwner>)> {
        let opens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opens.files.get(&open.0).cloned().ok_or(Status::BadHandle)
    }

    fn remove(&self, open: OpenId) -> Option<(Handle, Arc<OpenOwner>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).files.remove(&open.0)
    }
}

impl Remote3 {
    /// Makes a file that must not exist yet. The verifier lets a repeated call recognize the file
    /// that the first one made; the attributes are set by a second call.
    fn create_exclusively(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Changed<Node<Disk>, Disk>> {
        let made = match self.create(cred, at, &Create::Exclusive(random()?)) {
            Err(Status::NotSupp) => return self.create(cred, at, &Create::Guarded(*set)),
            made => made?,
        };
        // Set both times, because the server may keep the verifier in them.
        let times = (set.atime.or(Some(SetTime::Now)), set.mtime.or(Some(SetTime::Now)));
        let set = SetAttr { atime: times.0, mtime: times.1, ..*set };
        let handle = made.value.handle;
        let after = match self.setattr(cred, &handle, &set, None) {
            Ok(change) => change.after,
            Err(status) => {
                let removed = self.remove_by(cred, at, procedure::REMOVE);
                removed
                    .inspect_err(|status| tracing::warn!(%status, "cannot remove a new file"))
                    .ok();
                return Err(status);
            }
        };
        let attr = after.map_or_else(|| self.getattr(&handle), Ok)?;
        Ok(Changed { value: Node { handle, attr }, ..made })
    }
}

/// Most times that a file may disappear between the answer that it exists and its lookup.
const VANISHED_MAX: u32 = 8;

impl Remote3 {
    /// Creates and opens a file, or opens an existing one. The maker of a new file may use it
    /// whatever its mode; for an existing one the rights are checked. Only a guarded CREATE tells
    /// the two apart.
    fn create_or_open(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        access: OpenAccess,
        set: &SetAttr<Disk>,
    ) -> Result<Changed<OpenedFile, Disk>> {
        for _ in 0..VANISHED_MAX {
            match self.create(cred, at, &Create::Guarded(*set)) {
                Err(Status::Exist) => {}
                made => {
                    let made = made?;
                    let value = self.opened(cred, made.value)?;
                    return Ok(Changed { value, change: made.change });
                }
            }
            match self.open_there(cred, at, access, set.size) {
                Err(Status::NoEnt) => {}
                opened => return Ok(Changed { value: opened?, change: Change::UNKNOWN }),
            }
        }
        Err(Status::Delay)
    }

    /// Opens an existing file, and truncates it if a size is given.
    fn open_there(
        &self,
        cred: &Cred<Disk>,
        at: NamePlace<'_>,
        access: OpenAccess,
        size: Option<u64>,
    ) -> Result<OpenedFile> {
        let found = self.lookup(cred, at)?.node;
        match found.attr.file_type {
            FileType::Regular => {}
            FileType::Directory => return Err(Status::IsDir),
            _ => return Err(Status::Exist),
        }
        let mut opened = self.open(cred, &found.handle, None, access)?;
        if size.is_some() {
            let set = SetAttr { size, ..SetAttr::default() };
            let change = self.setattr(cred, &found.handle, &set, None);
            let change = change.inspect_err(|_| drop(self.opens.remove(opened.open)))?;
            opened.attr = change.after.or(opened.attr);
        }
        Ok(opened)
    }
}

impl OpenFiles for Remote3 {
    /// NFSv3 has no call that opens a file, so the name is not checked, as in other clients.
    fn open(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        _: Option<(&Handle, Name<'_>)>,
        access: OpenAccess,
    ) -> Result<OpenedFile> {
        let wanted = rights(access);
        let (granted, attr) = self.access(cred, node, wanted)?;
        if !granted.contains(wanted) {
            return Err(Status::Acces);
        }
        let open = self.opens.add(*node, self.callers.of(cred))?;
        Ok(OpenedFile { open, handle: *node, attr: Some(attr), delegation: None })
    }

    fn open_name(
        &self,
        cred: &Cred<Disk>,
        at: (&Handle, Name<'_>),
        access: OpenAccess,
        create: Option<&Create<Disk>>,
    ) -> Result<Changed<OpenedFile, Disk>> {
        if let Some(Create::Guarded(set)) = create {
            let made = self.create_exclusively(cred, at, set)?;
            return Ok(Changed { value: self.opened(cred, made.value)?, change: made.change });
        }
        let Some(how) = create else {
            let found = self.lookup(cred, at)?;
            let value = self.open(cred, &found.node.handle, None, access)?;
            return Ok(Changed { value, change: Change::UNKNOWN });
        };
        match how {
            Create::Unchecked(set) => self.create_or_open(cred, at, access, set),
            Create::Guarded(_) | Create::Exclusive(_) => {
                let made = self.create(cred, at, how)?;
                Ok(Changed { value: self.opened(cred, made.value)?, change: made.change })
            }
        }
    }

    fn close(&self, open: OpenId) -> Result<()> {
        self.unlock_open(open);
        self.opens.remove(open).map(drop).ok_or(Status::BadHandle)
    }

    fn delegation(&self, _: &Handle) -> Option<DelegationKind> {
        None
    }

    fn file_grant(&self, _: &Handle) -> Option<DelegationNumber> {
        None
    }

    fn return_delegation(&self, _: &Handle) -> Result<()> {
        Ok(())
    }

    fn note_unwritten(&self, _: &Handle, _: Option<u64>) {}

    fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome> {
        self.lock(wanted)
    }

    fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>> {
        self.find_lock(wanted)
    }

    /// A server of version 3 sends no events, so this only checks for lost locks.
    fn poll_event(&self, patience: Duration) -> Option<OpenEvent> {
        self.engine.poll_event(patience);
        self.assert_locks().map(|node| OpenEvent::StateLost { node })
    }
}

impl Remote3 {
    fn opened(&self, cred: &Cred<Disk>, node: Node<Disk>) -> Result<OpenedFile> {
        let Node { handle, attr } = node;
        let open = self.opens.add(handle, self.callers.of(cred))?;
        Ok(OpenedFile { open, handle, attr: Some(attr), delegation: None })
    }
}

const fn rights(access: OpenAccess) -> Access {
    match access {
        OpenAccess::Read => Access::READ,
        OpenAccess::Write => Access::MODIFY,
        OpenAccess::Both => Access::from_bits(Access::READ.bits() | Access::MODIFY.bits()),
    }
}

fn random() -> Result<[u8; 8]> {
    let mut bytes = [0; 8];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(8) => Ok(bytes),
        _ => Err(Status::ServerFault),
    }
}
