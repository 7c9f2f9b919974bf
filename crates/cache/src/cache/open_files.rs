//! Opens, locks and delegations: the cache passes them on and notes what it learns from them.

use std::sync::PoisonError;
use std::time::Duration;

use comity_vfs::{
    Access, Attr, Changed, Create, Cred, DelegationKind, DelegationNumber, Disk, Handle, HeldLock,
    LockOutcome, LockRequest, Name, OpenAccess, OpenEvent, OpenFiles, OpenId, OpenedFile,
    RangeLock, Result, Status,
};

use super::Cache;
use super::writing::is_final;
use crate::attribute_cache::Asked;
use crate::listing_cache::ListingEdit;
use crate::verdict_cache::CallerId;

impl Cache {
    fn below(&self) -> Result<&dyn OpenFiles> {
        self.fs.open_files().ok_or(Status::NotSupp)
    }

    fn remember(&self, opened: &OpenedFile) {
        let mut known = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(opened.open, opened.handle);
    }

    fn node_of(&self, open: OpenId) -> Option<Handle> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(&open).copied()
    }

    /// Returns whether a write delegation keeps other clients from reading and writing a file.
    /// Under a read delegation they may read it.
    pub(super) fn is_unshared(&self, node: &Handle) -> bool {
        self.delegation(node) == Some(DelegationKind::Write)
    }

    /// Notes the result of an open: valid attributes, and the rights that were granted.
    fn note_opened(
        &self,
        cred: &Cred<Disk>,
        (opened, asked): (OpenedFile, Asked),
        access: OpenAccess,
    ) -> OpenedFile {
        let node = opened.handle;
        let waits = self.waits(&node);
        if let Some(attr) = opened.attr {
            self.note_under_grant(&node, attr, asked, self.file_grant(&node));
        }
        let rights = [(access.reads(), Access::READ), (access.writes(), Access::MODIFY)];
        let generation = self.attributes.generation(&node);
        for (_, right) in rights.into_iter().filter(|(granted, _)| *granted) {
            self.verdicts.note(CallerId::of(cred), &node, (right, right), generation);
        }
        let attr = opened.attr.map(|attr| self.shown_with(&node, attr, waits));
        OpenedFile { attr, ..opened }
    }
}

impl OpenFiles for Cache {
    fn open(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        place: Option<(&Handle, Name<'_>)>,
        access: OpenAccess,
    ) -> Result<OpenedFile> {
        let asked = self.attributes.ask();
        // Under a delegation of its directory the name is certain.
        let doubtful = place.filter(|(dir, _)| !self.is_true(dir));
        let opened = self.below()?.open(cred, node, doubtful, access).inspect_err(|status| {
            // Another client has removed or renamed the file: its name must be looked up again.
            if *status == Status::Stale {
                self.attributes.expire(node);
                place.into_iter().for_each(|place| self.doubt(place));
            }
        })?;
        self.remember(&opened);
        Ok(self.note_opened(cred, (opened, asked), access))
    }

    fn open_name(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        access: OpenAccess,
        create: Option<&Create<Disk>>,
    ) -> Result<Changed<OpenedFile, Disk>> {
        if let Some(how) = create {
            self.flush_cut(cred, place, how);
        }
        let asked = self.attributes.ask();
        let opened = self.below()?.open_name(cred, place, access, create);
        let opened = opened.inspect_err(|_| self.doubt(place))?;
        self.remember(&opened.value);
        let edit = match (create, opened.value.attr) {
            (None, _) => Some(ListingEdit::Nothing),
            (Some(_), None) => None,
            (Some(_), Some(attr)) => {
                let object = (attr.fileid, Some(opened.value.handle));
                Some(ListingEdit::added_by(CallerId::of(cred), place.1.bytes(), object))
            }
        };
        self.names.forget(place);
        let step = self.note_own_names(place.0, &opened.change, asked, edit.as_ref());
        self.note_made(cred, place, opened.value.handle, step);
        let value = self.note_opened(cred, (opened.value, asked), access);
        Ok(Changed { value, ..opened })
    }

    fn close(&self, open: OpenId) -> Result<()> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(&open);
        self.below()?.close(open)
    }

    fn keeps_removed(&self) -> bool {
        self.fs.open_files().is_some_and(OpenFiles::keeps_removed)
    }

    fn delegation(&self, node: &Handle) -> Option<DelegationKind> {
        self.fs.open_files()?.delegation(node)
    }

    fn file_grant(&self, node: &Handle) -> Option<DelegationNumber> {
        self.fs.open_files()?.file_grant(node)
    }

    fn directory_grant(&self, dir: &Handle) -> Option<DelegationNumber> {
        self.fs.open_files()?.directory_grant(dir)
    }

    fn delegate_directory(&self, dir: &Handle) -> Result<(Attr<Disk>, Option<DelegationNumber>)> {
        self.below()?.delegate_directory(dir)
    }

    fn leave(&self) {
        self.fs.open_files().into_iter().for_each(OpenFiles::leave);
    }

    fn return_delegation(&self, node: &Handle) -> Result<()> {
        // Unsent data may wait only while the delegation is held; after its return others read the
        // file.
        let flushed = if self.is_directory(node) { Ok(()) } else { self.flush_stable(node) };
        if flushed.is_err()
            && let Some(file) = self.dirty.get(node)
        {
            file.lock().doubtful = true;
        }
        self.attributes.expire(node);
        let file = self.known_file(node);
        // Nothing is sent meanwhile: whether a WRITE came before the return could not be told.
        let turn = file.as_ref().map(|file| file.turn()).transpose()?;
        let returned = self.below()?.return_delegation(node);
        drop(turn);
        flushed.and(returned)
    }

    fn note_unwritten(&self, node: &Handle, size: Option<u64>) {
        if let Some(files) = self.fs.open_files() {
            files.note_unwritten(node, size);
        }
    }

    /// Passes a lock on. Programs synchronize by locks: the holder must see data that others wrote
    /// before, and others must see the holder's data once it unlocks.
    fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome> {
        let files = self.below()?;
        let node = self.node_of(wanted.open);
        // A delegated file is not written by other clients.
        let shared = || node.filter(|node| !self.is_delegated(node));
        let before = shared();
        let unsent = node.filter(|node| !self.is_unshared(node));
        if let (RangeLock::Free, Some(node)) = (wanted.lock, unsent) {
            // Data that is lost must not keep the lock; the next commit reports the loss.
            let sent = self.flush_stable(&node);
            let is_sent = || self.dirty.get(&node).is_none_or(|file| file.lock().is_clean());
            sent.or_else(|status| match status {
                Status::Interrupted => Err(status),
                _ if is_final(status) || is_sent() => Ok(()),
                _ => Err(status),
            })?;
        }
        let outcome = files.lock(wanted)?;
        // The delegation may have been returned before the lock was granted.
        if let Some(node) = before.or_else(shared) {
            self.attributes.expire(&node);
            if wanted.lock != RangeLock::Free {
                // A WRITE does not tell whether another client's came beside it.
                self.store.restart_if_carried(&self.file(&node));
            }
        }
        Ok(outcome)
    }

    fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>> {
        self.below()?.find_lock(wanted)
    }

    fn poll_event(&self, patience: Duration) -> Option<OpenEvent> {
        let event = self.fs.open_files()?.poll_event(patience)?;
        if let OpenEvent::DelegationLost { node } | OpenEvent::StateLost { node } = event {
            self.attributes.expire(&node);
            if let Some(file) = self.dirty.get(&node) {
                file.lock().doubtful = true;
            }
        }
        Some(event)
    }
}
