//! Two exports of one file system: state of a file conflicts even if clients use it by different
//! exports.

use comity_export::{Client, HandleKey, Plan};
use comity_proto::nfs4::callback::{CbRecall4args, operation as cb};
use comity_proto::nfs4::{
    Lock4denied, Lockt4args, NfsFh4, NfsLockType4, Nfsstat4, Open4args, Open4resok, OpenClaim4,
    OpenDelegation4, Openflag4, StateOwner4, operation as op, share,
};
use comity_state::{HostLock, LockRequestKind, LockType};
use comity_xdr::{Decoder, Opaque};

use crate::callbacks::{client, go_to, opened, perform};
use crate::session::Session;
use crate::world::{World, export, furnish, memory};

const READ: u32 = 1;
const WRITE: u32 = 2;

/// `/srv/pub` is export 1 and `/srv/other` export 2 of the same directory.
fn ground() -> World {
    let fs = memory();
    furnish(&*fs);
    let exports = vec![
        export(1, "/srv/pub", &fs, Client::Everybody),
        export(2, "/srv/other", &fs, Client::Everybody),
    ];
    World::of(Plan::new(HandleKey::new([7; 16]), exports))
}

/// Opens the file through an export; returns the status and whether a delegation came with it.
fn open(
    world: &World,
    session: &mut Session,
    export: &[u8],
    (share_access, share_deny): (u32, u32),
) -> Result<bool, Nfsstat4> {
    let (status, told) = perform(world, 1, session, 4, |call| {
        go_to(call, &[b"srv", export]);
        call.value(&op::OPEN);
        call.value(&Open4args {
            seqid: 0,
            share_access,
            share_deny,
            owner: StateOwner4 { clientid: 0, owner: Opaque(export) },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null(Opaque(b"file")),
        });
    });
    if status != Nfsstat4::Ok {
        return Err(status);
    }
    let opened: Open4resok<'_> = Decoder::new(&told[4 * 8..]).value().unwrap();
    Ok(!matches!(opened.delegation, OpenDelegation4::None | OpenDelegation4::NoneExt(_)))
}

/// The handle of the file for clients of an export.
fn sealed(world: &World, session: &mut Session, export: &[u8]) -> Vec<u8> {
    let (status, told) = perform(world, 1, session, 5, |call| {
        go_to(call, &[b"srv", export, b"file"]);
        call.value(&op::GETFH);
    });
    assert_eq!(status, Nfsstat4::Ok);
    Decoder::new(&told[4 * 10..]).value::<NfsFh4<'_>>().unwrap().0.to_vec()
}

/// The operation of the only callback that has been sent, and the handle in it.
fn recalled(world: &World) -> (u32, Vec<u8>) {
    let calls = world.calls();
    assert_eq!(calls.len(), 1);
    let (_, _, operation, mut args) = opened(&calls[0]);
    (operation, args.value::<CbRecall4args<'_>>().unwrap().fh.0.to_vec())
}

#[test]
fn deny_modes_apply_across_exports() {
    let world = ground();
    let (mut one, mut two) = (client(&world, 1, b"one"), client(&world, 1, b"two"));
    open(&world, &mut one, b"pub", (READ | share::WANT_NO_DELEG, WRITE)).unwrap();
    assert_eq!(open(&world, &mut two, b"other", (WRITE, 0)), Err(Nfsstat4::ShareDenied));
    open(&world, &mut two, b"other", (READ, 0)).unwrap();
}

#[test]
fn a_delegation_is_recalled_by_the_handle_of_its_holders_export() {
    for (holder, opener) in [(&b"pub"[..], &b"other"[..]), (b"other", b"pub")] {
        let world = ground();
        let (mut one, mut two) = (client(&world, 1, b"one"), client(&world, 1, b"two"));
        let handle = sealed(&world, &mut one, holder);
        assert_eq!(open(&world, &mut one, holder, (READ | WRITE, 0)), Ok(true));
        assert_eq!(open(&world, &mut two, opener, (READ, 0)), Err(Nfsstat4::Delay));
        assert_eq!(recalled(&world), (cb::CB_RECALL, handle));
    }
}

/// To a client two exports are two file systems, so that it cannot see that the files are the same.
#[test]
fn a_client_must_return_its_delegation_before_it_opens_the_file_by_another_export() {
    let world = ground();
    let mut one = client(&world, 1, b"one");
    let handle = sealed(&world, &mut one, b"pub");
    assert_eq!(open(&world, &mut one, b"pub", (READ | WRITE, 0)), Ok(true));
    assert_eq!(open(&world, &mut one, b"other", (READ, 0)), Err(Nfsstat4::Delay));
    assert_eq!(recalled(&world), (cb::CB_RECALL, handle));
}

#[test]
fn a_file_that_is_open_by_two_exports_is_not_delegated() {
    let world = ground();
    let (mut one, mut two) = (client(&world, 1, b"one"), client(&world, 1, b"two"));
    open(&world, &mut one, b"pub", (READ | share::WANT_NO_DELEG, 0)).unwrap();
    assert_eq!(open(&world, &mut one, b"other", (READ, 0)), Ok(false));
    assert_eq!(open(&world, &mut two, b"pub", (READ, 0)), Ok(false));
}

/// Locks of NLM through one export conflict with locks of NFSv4 through the other.
#[test]
fn locks_of_a_host_by_one_export_are_seen_by_the_other() {
    let world = ground();
    let mut one = client(&world, 1, b"one");
    let host =
        world.engine.host(world.now(), b"192.0.2.1", comity_state::Origin::default()).unwrap();
    let file = world.exports.current().unseal_key(&sealed(&world, &mut one, b"pub"));
    let file = file.unwrap();
    let range = comity_state::ByteRange { first: 0, last: 9 };
    let owner = b"a process with a long name on a host";
    let lock = HostLock { owner, file, range, kind: LockType::Write };
    world.engine.lock_host(world.now(), &host, &lock, LockRequestKind::NonBlocking).unwrap();
    for export in [&b"pub"[..], b"other"] {
        let (status, told) = perform(&world, 1, &mut one, 5, |call| {
            go_to(call, &[b"srv", export, b"file"]);
            call.value(&op::LOCKT);
            call.value(&Lockt4args {
                locktype: NfsLockType4::Write,
                offset: 5,
                length: 1,
                owner: StateOwner4 { clientid: 0, owner: Opaque(b"other process") },
            });
        });
        assert_eq!(status, Nfsstat4::Denied);
        let denied: Lock4denied<'_> = Decoder::new(&told[4 * 10..]).value().unwrap();
        assert_eq!((denied.offset, denied.length), (0, 10));
        // Linux has room for 20 bytes of the owner.
        assert_eq!(denied.owner.owner, Opaque(&owner[..20]));
    }
}
