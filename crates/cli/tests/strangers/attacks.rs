//! All calls of attackers that use their knowledge of the victim.

use comity_proto::nfs4::{
    BackchannelCtl4args, BindConnToSession4, ClientOwner4, Close4args, ExchangeId4args,
    ExistLockOwner4, Locker4, Lockt4args, NfsLockType4, Open4args, OpenClaim4, OpenConfirm4args,
    OpenDelegationType4, OpenDowngrade4args, OpenToLockOwner4, Openflag4, Range4args, Read4args,
    Setclientid4args, SetclientidConfirm4, StateOwner4, StateProtect4a, Stateid4, exchgid,
    operation as op, share,
};
use comity_proto::nlm::{
    Nlm4Cancargs, Nlm4Lockargs, Nlm4Notify, Nlm4Res, Nlm4Share, Nlm4Shareargs, Nlm4Stats,
    Nlm4Testargs, Nlm4Unlockargs, procedure as lock,
};
use comity_proto::nsm::StatChge;
use comity_proto::{grants, mount, nfs3, nlm, nsm, portmap};
use comity_xdr::{Counted, Encoder, Opaque};

use crate::moves;
use crate::victim::{
    Known, OWNER, OWNERS, VERIFIER, locking, nlm_range, nobody, sequence, session_of, unlocking,
    writing,
};
use crate::wire::{Call, Operation, bytes, compound, operation, putfh};

/// Operations that a listed caller does not send for a file that is delegated for writing. Any
/// caller may ask for the attributes of a file by its handle, and the server then asks the holder
/// (CB_GETATTR).
const CONFLICTS: [u32; 3] = [op::GETATTR, op::NVERIFY, op::VERIFY];

/// The rights that the server gives to an attacker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No rights. The attacker sends operations of 4.1 and 4.2 after a SEQUENCE of the victim's
    /// session.
    Refused,
    /// The attacker may see the victim's directory, and has a session of its own.
    Listed,
    /// The attacker may see what was granted to its key, and has a session of its own.
    Granted,
    /// The attacker is another user of the victim's client, and has a session of its own, too.
    Beside,
}

impl Standing {
    /// Returns whether AUTH_SYS admits the attacker.
    const fn is_admitted_by_address(self) -> bool {
        matches!(self, Self::Listed | Self::Beside)
    }
}

/// The next call of an attacker.
pub(crate) enum Attack {
    Call(Call),
    /// Operations of this minor version in a session of the attacker's own.
    InOwnSession(u32, Vec<Operation>),
    /// Operations of this minor version in the second slot of the victim's session.
    InSecondSlot(u32, Vec<Operation>),
}

/// All calls of all programs.
pub(crate) fn all(known: &Known, standing: Standing, home: Option<&[u8]>) -> Vec<Attack> {
    let mut attacks = Vec::new();
    let (calls, compounds) = moves::all(known, home);
    let calls = [
        of_nfs3(known, standing),
        of_mount(),
        of_locks(known, standing),
        of_others(standing),
        of_grants(),
        of_clients(known, standing),
        calls,
    ];
    attacks.extend(calls.into_iter().flatten().map(Attack::Call));
    // The numbers of a client's states show how many owners it has. An attacker in the victim's
    // client makes no owner before the victim does.
    let is_open =
        |operations: &[Operation]| operations.iter().any(|(number, _)| *number == op::OPEN);
    let is_early = |files: usize| standing == Standing::Beside && known.files.len() < files;
    for operations in of_files(known, standing).into_iter().chain(compounds) {
        if is_early(2) && is_open(&operations) {
            continue;
        }
        attacks.push(Attack::Call(compound(0, &operations)));
        for minor in [1, 2] {
            attacks.push(match standing {
                Standing::Refused => behind(known, minor, 1, &operations),
                _ => Attack::InOwnSession(minor, operations.clone()),
            });
            if standing == Standing::Beside && !(is_early(3) && is_open(&operations)) {
                attacks.push(Attack::InSecondSlot(minor, operations.clone()));
            }
        }
    }
    attacks
}

/// A COMPOUND that begins with a SEQUENCE of the victim's session, `ahead` requests after its last
/// one.
fn behind(known: &Known, minor: u32, ahead: u32, operations: &[Operation]) -> Attack {
    let session = known.session.unwrap_or([7; 16]);
    let first = sequence(session, known.sequenceid.wrapping_add(ahead));
    Attack::Call(compound(minor, &[&[first], operations].concat()))
}

/// The victim's newest stateids, and guesses made from them.
fn stateids(known: &Known) -> Vec<Stateid4> {
    let newest = known.stateids.iter().rev().take(3);
    let guesses = newest.flat_map(|real| {
        let mut guess = *real;
        guess.other[11] ^= 1;
        [*real, Stateid4 { seqid: 0, ..*real }, guess]
    });
    guesses.chain([Stateid4::ANONYMOUS, Stateid4::CURRENT]).collect()
}

/// Operations on the victim's files, each after PUTFH.
fn of_files(known: &Known, standing: Standing) -> Vec<Vec<Operation>> {
    let mut compounds = Vec::new();
    let clientid = known.clientids.last().copied().unwrap_or(1);
    let newest = known.files.iter().rev().take(2);
    for file in newest.chain(&known.directories) {
        let is_left = |number: u32| is_left(known, standing, file) && CONFLICTS.contains(&number);
        let every = (op::ACCESS..=op::REMOVEXATTR).chain([op::ILLEGAL]);
        let asked = every.map(|number| any(known, number));
        let by_stateid =
            stateids(known).into_iter().flat_map(|id| by_stateid(id, clientid, standing));
        let asked = asked.chain(by_stateid).filter(|(number, _)| !is_left(*number));
        compounds.extend(asked.map(|asked| vec![putfh(file), asked]));
    }
    compounds
}

/// Returns whether an attacker leaves out a file; see [`CONFLICTS`].
fn is_left(known: &Known, standing: Standing, file: &[u8]) -> bool {
    standing.is_admitted_by_address() && known.delegated.as_deref() == Some(file)
}

/// An operation whose arguments are a stateid of the victim and zeros, which many operations can
/// decode.
fn any(known: &Known, number: u32) -> Operation {
    let stateid = known.stateids.last().copied().unwrap_or_default();
    (number, [bytes(&stateid), vec![0; 48]].concat())
}

fn by_stateid(stateid: Stateid4, clientid: u64, standing: Standing) -> Vec<Operation> {
    let (open_stateid, lock_stateid, seqid) = (stateid, stateid, 3);
    let owner = StateOwner4 { clientid, owner: Opaque(OWNER) };
    let new = OpenToLockOwner4 { open_seqid: 3, open_stateid, lock_seqid: 1, lock_owner: owner };
    let old = ExistLockOwner4 { lock_stateid, lock_seqid: 2 };
    let (share_access, share_deny) = (share::READ, 0);
    let downgrade = OpenDowngrade4args { open_stateid, seqid, share_access, share_deny };
    let (offset, length) = (0, 100);
    let range = Range4args { stateid, offset, length };
    let open = |claim| {
        let openhow = Openflag4::NoCreate;
        // Another user of the same client that guesses the number takes the owner's turn.
        let seqid = if standing == Standing::Beside { 1000 } else { seqid };
        Open4args { seqid, share_access, share_deny, owner, openhow, claim }
    };
    let file = Opaque(&b"two"[..]);
    let claims = [
        OpenClaim4::Null(file),
        OpenClaim4::Previous(OpenDelegationType4::Write),
        OpenClaim4::DelegateCur { delegate_stateid: stateid, file },
        OpenClaim4::DelegatePrev(file),
        OpenClaim4::Fh,
        OpenClaim4::DelegCurFh(stateid),
    ];
    let mut operations = vec![
        operation(op::CLOSE, &Close4args { seqid, open_stateid }),
        operation(op::DELEGRETURN, &stateid),
        operation(op::LOCK, &locking(50, Locker4::New(new))),
        operation(op::LOCK, &locking(50, Locker4::Exist(old))),
        operation(op::LOCKU, &unlocking(2, stateid)),
        operation(op::OPEN_CONFIRM, &OpenConfirm4args { open_stateid, seqid }),
        operation(op::OPEN_DOWNGRADE, &downgrade),
        operation(op::READ, &Read4args { stateid, offset, count: 100 }),
        operation(op::READ_PLUS, &Read4args { stateid, offset, count: 100 }),
        writing(stateid),
        (op::SETATTR, truncation(stateid)),
        operation(op::ALLOCATE, &range),
        operation(op::DEALLOCATE, &range),
        operation(op::FREE_STATEID, &stateid),
        operation(op::TEST_STATEID, &Counted::<_, 64>(vec![stateid])),
        operation(op::OFFLOAD_CANCEL, &stateid),
        operation(op::LOCKT, &lockt(owner)),
    ];
    operations.extend(claims.map(|claim| operation(op::OPEN, &open(claim))));
    operations
}

const fn lockt(owner: StateOwner4<'_>) -> Lockt4args<'_> {
    Lockt4args { locktype: NfsLockType4::Write, offset: 0, length: u64::MAX, owner }
}

/// The arguments of SETATTR that set the size to 0.
fn truncation(stateid: Stateid4) -> Vec<u8> {
    let words = [1_u32, 1 << comity_proto::nfs4::attribute::SIZE, 8, 0, 0];
    let mut arguments = bytes(&stateid);
    words.iter().for_each(|word| arguments.extend(bytes(word)));
    arguments
}

/// COMPOUNDs about the victim's clients and its session, without a SEQUENCE of the attacker's own.
/// A listed attacker does not use the name of a client without state, because any caller may take
/// it.
fn of_clients(known: &Known, standing: Standing) -> Vec<Call> {
    let clientids = known.clientids.iter().flat_map(|id| [*id, id ^ 1, id + 1]);
    let mut calls: Vec<Call> = clientids.flat_map(|id| of_client(known, id)).collect();
    let session = known.session.unwrap_or([7; 16]);
    let bind = BindConnToSession4 { sessid: session, dir: 7, use_conn_in_rdma_mode: false };
    let sec_parms = Counted(Vec::new());
    let control = BackchannelCtl4args { cb_program: 1, sec_parms };
    for minor in [1, 2] {
        calls.push(compound(minor, &[operation(op::DESTROY_SESSION, &session)]));
        calls.push(compound(minor, &[operation(op::BIND_CONN_TO_SESSION, &bind)]));
        // The last request of the victim, and those that it may make next.
        let is_left = |ahead: &u32| standing == Standing::Beside && *ahead == 1;
        for ahead in (0..3).filter(|ahead| !is_left(ahead)) {
            for asked in [
                operation(op::BACKCHANNEL_CTL, &control),
                operation(op::DESTROY_SESSION, &session),
                operation(op::RECLAIM_COMPLETE, &false),
                (op::PUTROOTFH, Vec::new()),
            ] {
                if let Attack::Call(call) = behind(known, minor, ahead, &[asked]) {
                    calls.push(call);
                }
            }
        }
    }
    let is_settled = |number: &usize| known.holds[*number] || known.clientids.len() <= *number;
    let is_asked = |number: &usize| !standing.is_admitted_by_address() || is_settled(number);
    let asked = (0..OWNERS.len()).filter(is_asked);
    calls.extend(asked.flat_map(|number| introductions(OWNERS[number])));
    calls
}

fn of_client(known: &Known, clientid: u64) -> Vec<Call> {
    let owner = StateOwner4 { clientid, owner: Opaque(OWNER) };
    let confirms = known.confirms.iter().copied().chain([[0; 8]]);
    let mut calls: Vec<Call> = confirms
        .map(|confirm| SetclientidConfirm4 { clientid, confirm })
        .map(|args| compound(0, &[operation(op::SETCLIENTID_CONFIRM, &args)]))
        .collect();
    calls.push(compound(0, &[operation(op::RENEW, &clientid)]));
    calls.push(compound(0, &[operation(op::DELEGPURGE, &clientid)]));
    calls.push(compound(0, &[operation(op::RELEASE_LOCKOWNER, &owner)]));
    for minor in [1, 2] {
        for sequence in 0..3 {
            let args = session_of(clientid, sequence);
            calls.push(compound(minor, &[operation(op::CREATE_SESSION, &args)]));
        }
        calls.push(compound(minor, &[operation(op::DESTROY_CLIENTID, &clientid)]));
    }
    calls
}

/// Calls with the victim's owner string, as another instance and as the same one.
fn introductions(owner: &[u8]) -> Vec<Call> {
    let mut calls = Vec::new();
    for verifier in [VERIFIER, *b"another!"] {
        let client = ClientOwner4 { verifier, id: Opaque(owner) };
        let callback = nobody();
        let args = Setclientid4args { client, callback, callback_ident: 9 };
        calls.push(compound(0, &[operation(op::SETCLIENTID, &args)]));
        for flags in [0, exchgid::UPD_CONFIRMED_REC_A] {
            let (clientowner, state_protect) = (client, StateProtect4a::None);
            let args = ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None };
            calls.push(compound(1, &[operation(op::EXCHANGE_ID, &args)]));
        }
    }
    calls
}

/// All procedures of NFSv3 on the victim's files and in its directories.
fn of_nfs3(known: &Known, standing: Standing) -> Vec<Call> {
    use nfs3::procedure::*;
    let mut calls = vec![((nfs3::PROGRAM, 3, NULL), Vec::new())];
    let mut ask = |procedure: u32, parts: &[&[u8]]| {
        calls.push(((nfs3::PROGRAM, 3, procedure), parts.concat()));
    };
    let newest = known.files.iter().rev().take(2);
    for object in newest.chain(&known.directories) {
        let (handle, name) = (bytes(&Opaque::<128>(object)), bytes(&Opaque::<64>(b"three")));
        let (handle, name) = (handle.as_slice(), name.as_slice());
        // Mode 0666, size 0.
        let attributes = words(&[1, 0o666, 0, 0, 1, 0, 0, 0, 0]);
        let nothing = words(&[0; 6]);
        ask(LOOKUP, &[handle, name]);
        ask(ACCESS, &[handle, &words(&[0x3f])]);
        ask(READLINK, &[handle]);
        if !is_left(known, standing, object) {
            ask(GETATTR, &[handle]);
        }
        ask(SETATTR, &[handle, &attributes, &words(&[0])]);
        ask(READ, &[handle, &words(&[0, 0, 100])]);
        ask(WRITE, &[handle, &words(&[0, 0, 4, 2]), &bytes(&Opaque::<64>(b"evil"))]);
        ask(LINK, &[handle, handle, name]);
        ask(CREATE, &[handle, name, &words(&[0]), &nothing]);
        ask(MKDIR, &[handle, name, &nothing]);
        ask(SYMLINK, &[handle, name, &nothing, name]);
        ask(MKNOD, &[handle, name, &words(&[7]), &nothing]);
        ask(REMOVE, &[handle, name]);
        ask(RMDIR, &[handle, name]);
        ask(RENAME, &[handle, name, handle, name]);
        ask(READDIR, &[handle, &words(&[0, 0, 0, 0, 4096])]);
        ask(READDIRPLUS, &[handle, &words(&[0, 0, 0, 0, 4096, 4096])]);
        [FSSTAT, FSINFO, PATHCONF].iter().for_each(|procedure| ask(*procedure, &[handle]));
        ask(COMMIT, &[handle, &words(&[0, 0, 0])]);
    }
    calls
}

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn of_mount() -> Vec<Call> {
    let mut path = Encoder::new();
    path.opaque(b"/");
    let all = mount::procedure::NULL..=mount::procedure::EXPORT;
    all.map(|procedure| ((mount::PROGRAM, 3, procedure), path.bytes().to_vec())).collect()
}

/// All procedures of NLM on the victim's file, with the caller names that the victim uses.
pub(crate) fn of_locks(known: &Known, standing: Standing) -> Vec<Call> {
    let Some(file) = known.files.first() else { return Vec::new() };
    let mut calls = Vec::new();
    let mut ask = |procedures: &[u32], arguments: Vec<u8>| {
        calls.extend(procedures.iter().map(|each| ((nlm::PROGRAM, 4, *each), arguments.clone())));
    };
    let (cookie, exclusive, block) = (Opaque(&b"9"[..]), true, true);
    let alock = nlm_range(file);
    let (caller_name, fh, oh) = (alock.caller_name, alock.fh, alock.oh);
    let share = Nlm4Share { caller_name, fh, oh, mode: 3, access: 3 };
    let test = Nlm4Testargs { cookie, exclusive, alock };
    let taken = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim: false, state: 9 };
    let reclaim = true;
    let reclaimed = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 9 };
    let shared = Nlm4Shareargs { cookie, share, reclaim: false };
    let answer = Nlm4Res { cookie, stat: Nlm4Stats::Granted };
    ask(&[lock::NULL], Vec::new());
    ask(&[lock::TEST, lock::TEST_MSG, lock::GRANTED, lock::GRANTED_MSG], bytes(&test));
    ask(&[lock::LOCK, lock::LOCK_MSG, lock::NM_LOCK], bytes(&taken));
    ask(&[lock::LOCK], bytes(&reclaimed));
    ask(
        &[lock::CANCEL, lock::CANCEL_MSG],
        bytes(&Nlm4Cancargs { cookie, block, exclusive, alock }),
    );
    ask(&[lock::UNLOCK, lock::UNLOCK_MSG], bytes(&Nlm4Unlockargs { cookie, alock }));
    ask(&(lock::TEST_RES..=lock::GRANTED_RES).collect::<Vec<_>>(), bytes(&answer));
    ask(&[lock::SHARE, lock::UNSHARE], bytes(&shared));
    for name in HOST_NAMES {
        ask(&[lock::FREE_ALL], bytes(&Nlm4Notify { name: Opaque(name), state: 11 }));
    }
    let is_left = |call: &Call| standing == Standing::Beside && FREEING.contains(&call.0.2);
    calls.retain(|call| !is_left(call));
    calls
}

/// Procedures that end locks of a host. NLM names no user, so that they hold for the whole host.
const FREEING: [u32; 6] =
    [lock::UNLOCK, lock::UNLOCK_MSG, lock::CANCEL, lock::CANCEL_MSG, lock::UNSHARE, lock::FREE_ALL];

/// Names that the victim's host may have.
const HOST_NAMES: [&[u8]; 2] = [b"victim", b"127.0.0.1"];

/// Calls of the status monitor, and of the portmapper program at the server's port.
pub(crate) fn of_others(standing: Standing) -> Vec<Call> {
    let monitor =
        |procedure, arguments: Vec<u8>| ((nsm::PROGRAM, nsm::VERSION, procedure), arguments);
    let mut calls = vec![monitor(nsm::procedure::NULL, Vec::new())];
    for name in HOST_NAMES {
        let mon_name = Opaque(name);
        calls.push(monitor(nsm::procedure::STAT, bytes(&mon_name)));
        if standing != Standing::Beside {
            let notice = StatChge { mon_name, state: 11 };
            calls.push(monitor(nsm::procedure::NOTIFY, bytes(&notice)));
        }
    }
    let all = portmap::procedure::NULL..=portmap::procedure::DUMP;
    calls.extend(all.map(|each| ((portmap::PROGRAM, 2, each), vec![0; 16])));
    calls
}

/// All procedures of the grant program, without arguments and about the export.
fn of_grants() -> Vec<Call> {
    let text = bytes(&Opaque::<64>(b"/"));
    let all = grants::procedure::NULL..=grants::procedure::FETCH;
    let ask = |procedure, arguments| ((grants::PROGRAM, grants::VERSION, procedure), arguments);
    all.flat_map(|each| [ask(each, vec![0; 64]), ask(each, text.clone())]).collect()
}
