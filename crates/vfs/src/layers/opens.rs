//! Passes calls about state that is held at a server through a layer.

use std::time::Duration;

use super::{Hook, Layer};
use crate::{
    Attr, Changed, Create, Cred, DelegationKind, DelegationNumber, DirectoryNotice, Disk, Handle,
    HeldLock, LockOutcome, LockRequest, Name, OpenAccess, OpenEvent, OpenFiles, OpenId, OpenedFile,
    Result, Status,
};

impl<H: Hook> Layer<H> {
    fn below(&self) -> Result<&dyn OpenFiles> {
        self.fs.open_files().ok_or(Status::NotSupp)
    }
}

impl<H: Hook> OpenFiles for Layer<H> {
    fn open(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        place: Option<(&Handle, Name<'_>)>,
        access: OpenAccess,
    ) -> Result<OpenedFile> {
        self.hook.opens(access, false)?;
        self.below()?.open(cred, node, place, access)
    }

    fn open_name(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        access: OpenAccess,
        create: Option<&Create<Disk>>,
    ) -> Result<Changed<OpenedFile, Disk>> {
        self.hook.opens(access, create.is_some())?;
        self.below()?.open_name(cred, place, access, create)
    }

    fn close(&self, open: OpenId) -> Result<()> {
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

    fn return_delegation(&self, node: &Handle) -> Result<()> {
        self.below()?.return_delegation(node)
    }

    fn leave(&self) {
        self.fs.open_files().into_iter().for_each(OpenFiles::leave);
    }

    fn directory_grant(&self, dir: &Handle) -> Option<DelegationNumber> {
        self.fs.open_files()?.directory_grant(dir)
    }

    fn delegate_directory(&self, dir: &Handle) -> Result<(Attr<Disk>, Option<DelegationNumber>)> {
        self.hook.around(super::Verb::Getattr, dir, || self.below()?.delegate_directory(dir))
    }

    fn poll_notice(&self) -> Option<DirectoryNotice> {
        self.fs.open_files()?.poll_notice()
    }

    fn note_unwritten(&self, node: &Handle, size: Option<u64>) {
        if let Some(files) = self.fs.open_files() {
            files.note_unwritten(node, size);
        }
    }

    fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome> {
        self.below()?.lock(wanted)
    }

    fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>> {
        self.below()?.find_lock(wanted)
    }

    fn poll_event(&self, patience: Duration) -> Option<OpenEvent> {
        self.fs.open_files()?.poll_event(patience)
    }
}
