use std::sync::Arc;

use comity_proto::nfs3::{
    self, Diropargs3, Getattr3res, NfsFh3, PROGRAM, PostOpAttr, VERSION, procedure,
};
use comity_vfs::{Attr, Cred, Disk, Handle, HandleTable, Name, Node, Result, Status};
use comity_xdr::{Encode, Opaque};

use super::attributes::attr;
use super::locks::LockManager;
use super::opens::OpenTable;
use super::status::{is_put_off, ok};
use crate::callers::Callers;
use crate::compound::OpenOwner;
use crate::cookie_verifiers::Verifiers;
use crate::engine::{ClientEngine, Unanswered};
use crate::machine::CallFailure;
use crate::server_handle::ServerHandle;
use crate::stateless::{StatelessCall, StatelessMachine, StatelessReply};
use crate::unstable::UnstableWrites;

/// A file system of a server.
pub(crate) struct Remote3 {
    pub(super) engine: ClientEngine<StatelessMachine>,
    /// The owner of the mount, whose credential is used for verbs without a caller.
    pub(super) owner: Arc<OpenOwner>,
    pub(super) callers: Callers,
    pub(super) handles: Arc<HandleTable>,
    pub(super) root: Handle,
    pub(super) volume: u64,
    /// The error of calls that timed out too often.
    pub(super) late: Status,
    /// Most bytes of a READ and of a WRITE.
    pub(super) transfer_bytes: (u32, u32),
    pub(super) verifiers: Verifiers,
    pub(super) unstable: UnstableWrites,
    pub(super) opens: OpenTable,
    pub(super) locks: LockManager,
}

impl Remote3 {
    /// The server's own handles.
    pub(crate) fn handles(&self) -> Arc<HandleTable> {
        Arc::clone(&self.handles)
    }

    /// Makes a call with the credential of a caller.
    pub(super) fn ask(
        &self,
        caller: &OpenOwner,
        procedure: u32,
        arguments: &impl Encode,
    ) -> Result<StatelessReply> {
        let is_awaited = self.late == Status::Delay && changes_names(procedure);
        let procedure = (PROGRAM, VERSION, procedure);
        let call = StatelessCall::new(procedure, &caller.credential, arguments);
        let call = StatelessCall { is_put_off, is_awaited, ..call };
        match self.engine.perform(call.record.len(), call) {
            Ok(Err(CallFailure::TimedOut)) | Err(Unanswered::NoRoom) => Err(self.late),
            done => Ok(done??),
        }
    }

    /// Makes a call with the credential of a caller, and notes that the caller uses this object.
    pub(super) fn ask_using(
        &self,
        (cred, node): (&Cred<Disk>, &Handle),
        procedure: u32,
        arguments: &impl Encode,
    ) -> Result<StatelessReply> {
        self.ask(&self.callers.using(cred, node), procedure, arguments)
    }

    /// Makes a call with the credential of the caller that used the object last.
    pub(super) fn ask_unnamed(
        &self,
        node: &Handle,
        procedure: u32,
        arguments: &impl Encode,
    ) -> Result<StatelessReply> {
        let known: Option<Arc<OpenOwner>> = self.callers.who_used(node);
        self.ask(known.as_ref().unwrap_or(&self.owner), procedure, arguments)
    }

    /// The server's handle of an object.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if it is too long for version 3.
    pub(super) fn file(&self, node: &Handle) -> Result<ServerHandle> {
        let name = self.handles.name(node)?;
        let fits = name.len() <= nfs3::HANDLE_BYTES_MAX as usize;
        ServerHandle::new(&name).filter(|_| fits).ok_or(Status::BadHandle)
    }

    pub(super) fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        let file = self.file(node)?;
        let reply = self.ask_unnamed(node, procedure::GETATTR, &fh(&file))?;
        Ok(attr(&ok(reply.read::<Getattr3res>())?))
    }

    /// Returns the attributes of a reply, or asks for them if it has none.
    pub(super) fn told_or_asked(&self, node: &Handle, told: &PostOpAttr) -> Result<Attr<Disk>> {
        told.as_ref().map_or_else(|| self.getattr(node), |told| Ok(attr(told)))
    }

    /// Makes a node of an object's handle and attributes, and notes that the caller uses it.
    pub(super) fn node(
        &self,
        cred: &Cred<Disk>,
        object: NfsFh3<'_>,
        told: &PostOpAttr,
    ) -> Result<Node<Disk>> {
        let handle = self.handles.handle(object.0)?;
        self.callers.using(cred, &handle);
        Ok(Node { handle, attr: self.told_or_asked(&handle, told)? })
    }
}

/// Returns whether a procedure must not be executed twice.
const fn changes_names(procedure: u32) -> bool {
    use procedure::{CREATE, LINK, MKDIR, MKNOD, REMOVE, RENAME, RMDIR, SYMLINK};
    matches!(procedure, CREATE | LINK | MKDIR | MKNOD | REMOVE | RENAME | RMDIR | SYMLINK)
}

/// Encodes a handle as an argument.
pub(super) fn fh(file: &ServerHandle) -> NfsFh3<'_> {
    Opaque(file.bytes())
}

/// Encodes a name in a directory as an argument.
pub(super) fn place<'a>(dir: &'a ServerHandle, name: Name<'a>) -> Diropargs3<'a> {
    Diropargs3 { dir: fh(dir), name: Opaque(name.bytes()) }
}
