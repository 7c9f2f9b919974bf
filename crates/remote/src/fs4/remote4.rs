use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use comity_idmap::Owners;
use comity_proto::nfs4::{Fattr4, NfsFh4, attribute, operation as op};
use comity_vfs::{Attr, Cred, Disk, Handle, HandleTable, Node, Result, Status};

use super::attributes::{KnownAttributes, OBJECT};
use crate::callers::Callers;
use crate::compound::{CompoundCall, CompoundReply, OpResults, OpenOwner};
use crate::cookie_verifiers::Verifiers;
use crate::engine::{ClientEngine, Unanswered};
use crate::machine::CallFailure;
use crate::server_handle::ServerHandle;
use crate::session::{ClientMachine, SessionAnswer, SessionRequest};
use crate::unstable::UnstableWrites;

/// A file system of a server.
pub(crate) struct Remote4 {
    pub(super) engine: ClientEngine<ClientMachine>,
    /// The minor version.
    pub(super) minor: u32,
    /// The owner of the mount, whose credential is used for verbs without a caller.
    pub(super) owner: Arc<OpenOwner>,
    pub(super) callers: Callers,
    pub(super) owners: Owners,
    pub(super) handles: Arc<HandleTable>,
    pub(super) root: Handle,
    pub(super) volume: u64,
    /// True if the client wants delegations.
    pub(super) wants_delegations: bool,
    /// The error of calls that timed out too often.
    pub(super) late: Status,
    /// True once the server has said that it delegates no directories.
    pub(super) lacks_directories: AtomicBool,
    /// Most bytes of a READ and of a WRITE.
    pub(super) transfer_bytes: (u32, u32),
    pub(super) verifiers: Verifiers,
    pub(super) unstable: UnstableWrites,
}

impl Remote4 {
    /// The server's own handles.
    pub(crate) fn handles(&self) -> Arc<HandleTable> {
        Arc::clone(&self.handles)
    }

    /// The minor version in use.
    pub(crate) const fn minor(&self) -> u32 {
        self.minor
    }

    /// Begins a COMPOUND on an object with the credential of a caller, and notes that the caller
    /// uses the object.
    pub(super) fn call(&self, cred: &Cred<Disk>, node: &Handle) -> Result<CompoundCall> {
        self.call_as(&self.callers.using(cred, node), node)
    }

    /// Begins a COMPOUND on an object with the credential of a caller.
    pub(super) fn call_as(&self, caller: &OpenOwner, node: &Handle) -> Result<CompoundCall> {
        Ok(self.call_on(caller, &self.file(node)?))
    }

    /// Begins a COMPOUND on an object, given by the server's handle.
    pub(super) fn call_on(&self, caller: &OpenOwner, file: &ServerHandle) -> CompoundCall {
        CompoundCall::new(self.minor, &caller.credential).on(file)
    }

    /// The server's handle of an object.
    ///
    /// # Errors
    /// [`Status::Stale`] if it was forgotten.
    pub(super) fn file(&self, node: &Handle) -> Result<ServerHandle> {
        ServerHandle::new(&self.handles.name(node)?).ok_or(Status::BadHandle)
    }

    /// Begins a COMPOUND with the credential of the caller that used the object last.
    pub(super) fn call_unnamed(&self, node: &Handle) -> Result<CompoundCall> {
        let known: Option<Arc<OpenOwner>> = self.callers.who_used(node);
        self.call_as(known.as_ref().unwrap_or(&self.owner), node)
    }

    /// Performs a COMPOUND; its results begin with that of PUTFH.
    pub(super) fn perform(&self, call: CompoundCall) -> Result<CompoundReply> {
        let request = call.finish();
        let bytes = request.record.len();
        match self.ask(bytes, SessionRequest::Compound(request))? {
            SessionAnswer::Reply(reply) => Ok(reply),
            _ => Err(Status::ServerFault),
        }
    }

    /// Performs a request, and charges `bytes` to the bytes in flight.
    pub(super) fn ask(&self, bytes: usize, request: SessionRequest) -> Result<SessionAnswer> {
        match self.engine.perform(bytes, request) {
            Ok(Err(CallFailure::TimedOut)) | Err(Unanswered::NoRoom) => Err(self.late),
            done => Ok(done??),
        }
    }

    /// Reads the result of a GETATTR of [`OBJECT`].
    pub(super) fn attr(&self, results: &mut OpResults<'_>) -> Result<Attr<Disk>> {
        let fattr: Fattr4<'_> = results.next(op::GETATTR)?;
        let known = KnownAttributes::decode(&fattr, &self.owners).map_err(malformed)?;
        known.attr().ok_or(Status::Io)
    }

    /// Reads the result of GETFH.
    pub(super) fn handle(&self, results: &mut OpResults<'_>) -> Result<Handle> {
        self.handles.handle(results.next::<NfsFh4<'_>>(op::GETFH)?.0)
    }

    /// Reads the results of GETFH and GETATTR. For a mount point they describe the root of the file
    /// system mounted there.
    pub(super) fn node(&self, results: &mut OpResults<'_>) -> Result<Node<Disk>> {
        Ok(Node { handle: self.handle(results)?, attr: self.attr(results)? })
    }

    /// Returns the attributes of an object.
    pub(super) fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        let reply = self.perform(self.call_unnamed(node)?.op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        self.attr(&mut results)
    }
}

/// Converts malformed results to an error.
pub(super) fn malformed(reason: comity_xdr::Malformed) -> Status {
    crate::compound::OpFailure::Malformed(reason).into()
}

/// The number of the attribute `type`.
pub(super) const TYPE: u32 = attribute::TYPE;
