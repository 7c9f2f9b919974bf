//! Encoding of the server's calls, CB_NULL and CB_COMPOUND, as whole records.

use comity_credential::{Flavor, OpaqueAuth};
use comity_proto::nfs4::callback::{
    CbCompoundHead, CbGetattr4args, CbNotifyLock4args, CbOffload4head, CbRecall4args,
    CbRecallAny4args, CbRecallSlot4args, CbSequence4args, ReferringCall4, ReferringCallList4,
    VERSION, operation, procedure, recall_any,
};
use comity_proto::nfs4::{
    Bitmap4, Nfsstat4, StableHow4, StateOwner4, Stateid4, WriteResponse4, attribute,
};
use comity_rpc::{AuthSys, CallHeader};
use comity_state::{CallbackSecurity, Effect, OffloadEnd, SessionId};
use comity_xdr::{Counted, Encode, Encoder, Opaque};

/// The destination of a call, and the credential that it carries.
pub(super) struct Address<'a> {
    pub(super) xid: u32,
    /// The minor version that the client uses.
    pub(super) minor: u32,
    pub(super) program: u32,
    pub(super) security: &'a CallbackSecurity,
    pub(super) sequence: Option<Sequence>,
    /// The `callback_ident` of a client of minor version 0.
    pub(super) ident: u32,
}

/// A slot of a session's back channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequence {
    pub(super) session: SessionId,
    pub(super) slot: u32,
    pub(super) seqid: u32,
    pub(super) highest_slot: u32,
}

/// Returns the credential of calls to a client of minor version 0, which cannot choose one. Linux
/// accepts only AUTH_SYS.
pub(super) fn plain_security() -> CallbackSecurity {
    CallbackSecurity::Sys { machine: b"comity"[..].into(), uid: 0, gid: 0, gids: Box::default() }
}

/// Encodes a call as a record. `fh` is the client's filehandle of the file, and for CB_NOTIFY all
/// of its arguments.
pub(super) fn record(address: &Address<'_>, effect: &Effect, fh: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    match effect {
        Effect::Probe { .. } => header(&mut encoder, address, procedure::CB_NULL),
        _ => {
            header(&mut encoder, address, procedure::CB_COMPOUND);
            compound(&mut encoder, address, effect, fh);
        }
    }
    encoder.end_record(start);
    encoder.bytes().to_vec()
}

fn header(encoder: &mut Encoder, address: &Address<'_>, procedure: u32) {
    let mut body = Encoder::new();
    let flavor = credential(address.security, &mut body);
    let credential = OpaqueAuth { flavor, body: Opaque(body.bytes()) };
    let (xid, program) = (address.xid, address.program);
    let verifier = OpaqueAuth::NONE;
    encoder.value(&CallHeader { xid, program, version: VERSION, procedure, credential, verifier });
}

fn credential(security: &CallbackSecurity, body: &mut Encoder) -> Flavor {
    let CallbackSecurity::Sys { machine, uid, gid, gids } = security else { return Flavor::NONE };
    let (machine_name, gids) = (Opaque(machine), Counted(gids.to_vec()));
    body.value(&AuthSys { stamp: 0, machine_name, uid: *uid, gid: *gid, gids });
    Flavor::SYS
}

fn compound(encoder: &mut Encoder, address: &Address<'_>, effect: &Effect, fh: &[u8]) {
    encoder.value(&CbCompoundHead {
        tag: Opaque(b""),
        minorversion: address.minor,
        callback_ident: address.ident,
        operations: 1 + u32::from(address.sequence.is_some()),
    });
    if let Some(sequence) = address.sequence {
        step(encoder, operation::CB_SEQUENCE, &arguments(sequence, effect));
    }
    question(encoder, effect, fh);
}

/// Appends the operation of a callback.
fn question(encoder: &mut Encoder, effect: &Effect, fh: &[u8]) {
    match effect {
        Effect::Recall { stateid, truncate, .. } => {
            let stateid = Stateid4 { seqid: stateid.seqid, other: stateid.other };
            let recall = CbRecall4args { stateid, truncate: *truncate, fh: Opaque(fh) };
            step(encoder, operation::CB_RECALL, &recall);
        }
        Effect::RecallLayout { .. } => {
            encoder.value(&operation::CB_LAYOUTRECALL);
            encoder.raw(fh);
        }
        Effect::NotifyLock { client, owner, .. } => {
            let lock_owner = StateOwner4 { clientid: client.id().0, owner: Opaque(owner) };
            let notice = CbNotifyLock4args { fh: Opaque(fh), lock_owner };
            step(encoder, operation::CB_NOTIFY_LOCK, &notice);
        }
        Effect::Offload { stateid, copied, end, .. } => {
            let stateid = Stateid4 { seqid: stateid.seqid, other: stateid.other };
            let head = CbOffload4head { fh: Opaque(fh), stateid };
            step(encoder, operation::CB_OFFLOAD, &head);
            outcome(encoder, *copied, end);
        }
        Effect::Notify { .. } => {
            encoder.value(&operation::CB_NOTIFY);
            encoder.raw(fh);
        }
        Effect::RecallAny { keep, directories, .. } => {
            let kinds = [
                recall_any::READ_DELEGATIONS,
                recall_any::WRITE_DELEGATIONS,
                recall_any::DIR_DELEGATIONS,
            ];
            // Clients that know nothing of directory delegations need not know their number.
            let kinds = if *directories { &kinds[..] } else { &kinds[..2] };
            let (objects_to_keep, type_mask) = (*keep, Bitmap4::of(kinds));
            let wish = CbRecallAny4args { objects_to_keep, type_mask };
            step(encoder, operation::CB_RECALL_ANY, &wish);
        }
        Effect::RecallSlot { target, .. } => {
            let wish = CbRecallSlot4args { target_highest_slotid: *target };
            step(encoder, operation::CB_RECALL_SLOT, &wish);
        }
        // A probe is a call without operations.
        Effect::Probe { .. } => {}
        Effect::GetAttr { .. } => {
            let attr_request = Bitmap4::of(&[attribute::CHANGE, attribute::SIZE]);
            let question = CbGetattr4args { fh: Opaque(fh), attr_request };
            step(encoder, operation::CB_GETATTR, &question);
        }
    }
}

fn step(encoder: &mut Encoder, operation: u32, arguments: &impl Encode) {
    encoder.value(&operation);
    encoder.value(arguments);
}

/// Appends `offload_info4`. The data are UNSTABLE: they may be lost until the client commits them.
fn outcome(encoder: &mut Encoder, count: u64, end: &OffloadEnd) {
    encoder.value(&end.status);
    if end.status == Nfsstat4::Ok as u32 {
        let (committed, writeverf) = (StableHow4::Unstable, end.verifier.0);
        encoder.value(&WriteResponse4 { callback_id: None, count, committed, writeverf });
    } else {
        encoder.value(&count);
    }
}

/// Returns the referring calls: the client may receive the reply to the referred call later than
/// the callback.
fn referring(effect: &Effect) -> Vec<ReferringCallList4> {
    let Effect::Offload { asked_by, .. } = effect else { return Vec::new() };
    let (sequenceid, slotid) = (asked_by.seqid, asked_by.slot);
    let calls = Counted(vec![ReferringCall4 { sequenceid, slotid }]);
    vec![ReferringCallList4 { sessionid: asked_by.session.0, calls }]
}

fn arguments(sequence: Sequence, effect: &Effect) -> CbSequence4args {
    CbSequence4args {
        sessionid: sequence.session.0,
        sequenceid: sequence.seqid,
        slotid: sequence.slot,
        highest_slotid: sequence.highest_slot,
        cachethis: false,
        referring_call_lists: Counted(referring(effect)),
    }
}
