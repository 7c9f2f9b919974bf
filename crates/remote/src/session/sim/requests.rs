use std::sync::Arc;

use comity_proto::nfs4::{
    Bitmap4, Component4, Create4args, Createhow4, Createtype4, Fattr4, GetDirDelegation4args,
    NfsFh4, Nfsstat4, Nfstime4, OpenClaim4, Openflag4, Read4resok, attribute, operation as op,
};
use comity_vfs::{
    Cred, DelegationNumber, Disk, Gid, LockOwner, LockRequest, OpenAccess, OpenId, RangeLock, Uid,
};
use comity_xdr::{Encode, Encoder, Opaque};

use super::world::World;
use crate::compound::{
    CompoundCall, CompoundReply, OpenArguments, OpenOwner, StatePurpose, StateUse, share_bits,
};
use crate::rpc::auth_sys;
use crate::server_handle::ServerHandle;
use crate::session::{
    DirectoryTask, OpenAnswer, OpenTask, SessionAnswer, SessionOutcome, SessionRequest, TaskClaim,
};

pub(crate) fn cred(uid: u32) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(uid))
}

/// The open-owner of a user.
pub(crate) fn owner(uid: u32) -> Arc<OpenOwner> {
    Arc::new(OpenOwner { id: uid + 1, credential: auth_sys(&cred(uid), b"sim") })
}

/// Begins a COMPOUND as root in minor version 2.
pub(crate) fn call() -> CompoundCall {
    CompoundCall::new(2, &owner(0).credential)
}

const fn component(name: &str) -> Component4<'_> {
    Opaque(name.as_bytes())
}

fn compound(call: CompoundCall) -> SessionRequest {
    SessionRequest::Compound(call.finish())
}

/// Unwraps the reply to a COMPOUND.
pub(crate) fn reply(outcome: SessionOutcome) -> CompoundReply {
    match outcome {
        Ok(SessionAnswer::Reply(reply)) => reply,
        outcome => panic!("no reply: {outcome:?}"),
    }
}

/// Unwraps the result of an open.
pub(crate) fn opened(outcome: SessionOutcome) -> OpenAnswer {
    match outcome {
        Ok(SessionAnswer::Opened(answer)) => answer,
        outcome => panic!("not opened: {outcome:?}"),
    }
}

/// Looks up the handle of the exported directory.
pub(crate) fn top(world: &mut World) -> ServerHandle {
    let call = call().bare(op::PUTROOTFH).op(op::LOOKUP, &component("export")).bare(op::GETFH);
    let reply = reply(world.perform(0, compound(call)));
    let mut results = reply.results();
    results.status(op::PUTROOTFH).unwrap();
    results.status(op::LOOKUP).unwrap();
    ServerHandle::new(results.next::<NfsFh4<'_>>(op::GETFH).unwrap().0).unwrap()
}

/// MKDIR, which must not be done twice.
pub(crate) fn mkdir(top: &ServerHandle, name: &str) -> SessionRequest {
    let createattrs = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(&[]) };
    let objname = component(name);
    let arguments = Create4args { objtype: Createtype4::Dir, objname, createattrs };
    compound(call().on(top).op(op::CREATE, &arguments).once())
}

/// Creates a file if it does not exist, and closes it again.
pub(crate) fn file(world: &mut World, top: &ServerHandle, name: &str) -> ServerHandle {
    let task = OpenTask::of_caller(owner(0), None, OpenAccess::Both, TaskClaim::Use);
    let reply = reply(world.perform(0, open_name(task, top, name)));
    let mut results = reply.results();
    for operation in [op::PUTFH, op::SAVEFH] {
        results.status(operation).unwrap();
    }
    results.next::<Fattr4<'_>>(op::GETATTR).unwrap();
    results.next::<comity_proto::nfs4::Open4resok<'_>>(op::OPEN).unwrap();
    ServerHandle::new(results.next::<NfsFh4<'_>>(op::GETFH).unwrap().0).unwrap()
}

/// OPEN by name, which creates the file if needed.
pub(crate) fn open_name(task: OpenTask, top: &ServerHandle, name: &str) -> SessionRequest {
    let attrs = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(&[]) };
    let arguments = OpenArguments {
        owner: task.owner.id,
        access: share_bits(task.access),
        wants_delegation: false,
        how: Openflag4::Create(Createhow4::Unchecked(attrs)),
        claim: OpenClaim4::Null(component(name)),
    };
    let call = call().on(top).bare(op::SAVEFH).op(op::GETATTR, &Bitmap4::EMPTY);
    SessionRequest::Open(task, call.op(op::OPEN, &arguments).once().bare(op::GETFH).finish())
}

/// OPEN of a file by a caller.
pub(crate) fn open(uid: u32, file: &ServerHandle, access: OpenAccess) -> SessionRequest {
    let owner = owner(uid);
    let arguments = OpenArguments {
        owner: owner.id,
        access: share_bits(access),
        wants_delegation: true,
        how: Openflag4::NoCreate,
        claim: OpenClaim4::Fh,
    };
    let call = CompoundCall::new(2, &owner.credential).on(file).op(op::OPEN, &arguments).once();
    let task = OpenTask::of_caller(owner, Some(*file), access, TaskClaim::Caller);
    SessionRequest::Open(task, call.finish())
}

/// READ of the first 100 bytes of a file.
pub(crate) fn read(uid: u32, file: &ServerHandle) -> SessionRequest {
    let (owner, purpose) = (owner(uid), StatePurpose::Data);
    let call = CompoundCall::new(2, &owner.credential).on(file);
    let state = StateUse { file: *file, owner, access: OpenAccess::Read, purpose };
    compound(call.stateful(op::READ, state, &Pair(0_u64, 100_u32)))
}

/// The bytes that a READ returned.
pub(crate) fn bytes(outcome: SessionOutcome) -> Result<Vec<u8>, Nfsstat4> {
    let reply = reply(outcome);
    let mut results = reply.results();
    results.status(op::PUTFH).map_err(|_| reply.status)?;
    let read = results.next::<Read4resok<'_>>(op::READ).map_err(|_| reply.status)?;
    Ok(read.data.0.to_vec())
}

/// WRITE at the beginning of a file.
pub(crate) fn write(uid: u32, file: &ServerHandle, data: &[u8]) -> SessionRequest {
    let (owner, purpose) = (owner(uid), StatePurpose::Data);
    let call = CompoundCall::new(2, &owner.credential).on(file);
    let state = StateUse { file: *file, owner, access: OpenAccess::Write, purpose };
    let rest = Pair(0_u64, Pair(2_u32, Opaque::<'_, 1024>(data)));
    compound(call.stateful(op::WRITE, state, &rest))
}

/// GET_DIR_DELEGATION without notifications.
pub(crate) fn delegate(directory: &ServerHandle) -> SessionRequest {
    let delay = Nfstime4 { seconds: 0, nseconds: 0 };
    let arguments = GetDirDelegation4args {
        signal_deleg_avail: false,
        notification_types: Bitmap4::EMPTY,
        child_attr_delay: delay,
        dir_attr_delay: delay,
        child_attributes: Bitmap4::EMPTY,
        dir_attributes: Bitmap4::EMPTY,
    };
    let call = call().on(directory).op(op::GET_DIR_DELEGATION, &arguments).once();
    let task = DirectoryTask { directory: *directory, owner: owner(0) };
    SessionRequest::Delegate(task, call.finish())
}

/// The grant that a request for a directory delegation returned.
pub(crate) fn granted(outcome: SessionOutcome) -> Option<DelegationNumber> {
    match outcome {
        Ok(SessionAnswer::Delegated(_, grant)) => grant,
        Ok(SessionAnswer::Done) => None,
        outcome => panic!("no answer about a directory: {outcome:?}"),
    }
}

/// GETATTR without attributes.
pub(crate) fn nothing(file: &ServerHandle) -> SessionRequest {
    compound(call().on(file).op(op::GETATTR, &Bitmap4::EMPTY))
}

/// GETATTR of the size of a file.
pub(crate) fn getattr_size(file: &ServerHandle) -> SessionRequest {
    compound(call().on(file).op(op::GETATTR, &Bitmap4::of(&[attribute::SIZE])))
}

/// The size that a GETATTR returned.
pub(crate) fn size(outcome: SessionOutcome) -> u64 {
    let reply = reply(outcome);
    let mut results = reply.results();
    results.status(op::PUTFH).unwrap();
    let fattr: Fattr4<'_> = results.next(op::GETATTR).unwrap();
    u64::from_be_bytes(*fattr.attr_vals.0.first_chunk().unwrap())
}

/// A lock of bytes 10 to 19.
pub(crate) fn lock(open: &OpenAnswer, owner: u64, lock: RangeLock, waits: bool) -> SessionRequest {
    let open = OpenId(open.open);
    let owner = LockOwner(owner);
    SessionRequest::Lock(LockRequest { open, owner, bytes: (10, 19), lock, waits })
}

/// Two values, encoded in order.
struct Pair<A, B>(A, B);

impl<A: Encode, B: Encode> Encode for Pair<A, B> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.value(&self.0);
        encoder.value(&self.1);
    }
}
