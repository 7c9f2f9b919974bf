//! An OPEN with size 0 (O_TRUNC) changes the file, whatever access it asks for.

use std::sync::Arc;

use comity_export::{Client, HandleKey, Plan};
use comity_proto::nfs4::{
    Bitmap4, Createhow4, Fattr4, Nfsstat4, Open4args, Open4resok, OpenClaim4, OpenDelegation4,
    Openflag4, Read4args, StateOwner4, Stateid4, attribute, operation as op, share,
};
use comity_vfs::layers::{Faults, Layer, Verb, When};
use comity_vfs::{Fs, Status};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::callbacks::{client, go_to, perform};
use crate::session::Session;
use crate::world::{World, export, furnish, memory};

const MINOR: u32 = 1;
const FOLDER: [&[u8]; 2] = [b"srv", b"pub"];

struct Opener<'w> {
    world: &'w World,
    session: Session,
}

impl<'w> Opener<'w> {
    fn new(world: &'w World, name: &[u8]) -> Self {
        Self { world, session: client(world, MINOR, name) }
    }

    /// Opens the file without a change; returns the stateid, and whether the file is delegated.
    fn open(&mut self, share_access: u32, share_deny: u32) -> Result<(Stateid4, bool), Nfsstat4> {
        self.say_open(share_access, share_deny, Openflag4::NoCreate)
    }

    /// Opens the file with size 0.
    fn empty(&mut self, access: u32) -> Result<(Stateid4, bool), Nfsstat4> {
        let attrmask = Bitmap4::of(&[attribute::SIZE]);
        let attrs = Fattr4 { attrmask, attr_vals: Opaque(&[0; 8]) };
        let how = Openflag4::Create(Createhow4::Unchecked(attrs));
        self.say_open(access | share::WANT_NO_DELEG, 0, how)
    }

    fn say_open(
        &mut self,
        share_access: u32,
        share_deny: u32,
        openhow: Openflag4<'_>,
    ) -> Result<(Stateid4, bool), Nfsstat4> {
        let (seqid, claim) = (0, OpenClaim4::Null(Opaque(b"file")));
        let owner = StateOwner4 { clientid: 0, owner: Opaque(b"process") };
        let (status, told) = perform(self.world, MINOR, &mut self.session, 4, |call| {
            go_to(call, &FOLDER);
            call.value(&op::OPEN);
            call.value(&Open4args { seqid, share_access, share_deny, owner, openhow, claim });
        });
        if status != Nfsstat4::Ok {
            return Err(status);
        }
        let opened: Open4resok<'_> = Decoder::new(&told[4 * 8..]).value().unwrap();
        Ok((opened.stateid, matches!(opened.delegation, OpenDelegation4::Read(_))))
    }

    /// Sends a READ; returns its status and the number of bytes.
    fn read(&mut self, stateid: Stateid4) -> (Nfsstat4, u32) {
        let read = |call: &mut Encoder| {
            go_to(call, &[FOLDER[0], FOLDER[1], b"file"]);
            call.value(&op::READ);
            call.value(&Read4args { stateid, offset: 0, count: 100 });
        };
        let (status, told) = perform(self.world, MINOR, &mut self.session, 5, read);
        let bytes = told.get(4 * 11..).map(|told| Decoder::new(told).value().unwrap());
        (status, bytes.unwrap_or_default())
    }
}

const HELLO: (Nfsstat4, u32) = (Nfsstat4::Ok, 12);

#[test]
fn a_delegation_is_returned_before_the_file_is_emptied() {
    let world = World::new();
    let (mut one, mut two) = (Opener::new(&world, b"one"), Opener::new(&world, b"two"));
    let (stateid, delegated) = one.open(share::READ | share::WANT_READ_DELEG, 0).unwrap();
    assert!(delegated);
    assert_eq!(two.empty(share::READ), Err(Nfsstat4::Delay));
    assert_eq!(world.calls().len(), 1, "it is recalled");
    assert_eq!(one.read(stateid), HELLO);
}

#[test]
fn a_deny_mode_against_writing_denies_truncation() {
    let world = World::new();
    let (mut one, mut two) = (Opener::new(&world, b"one"), Opener::new(&world, b"two"));
    let (stateid, _) = one.open(share::READ | share::WANT_NO_DELEG, share::WRITE).unwrap();
    assert_eq!(two.empty(share::READ), Err(Nfsstat4::ShareDenied));
    assert_eq!(one.read(stateid), HELLO);
    two.open(share::READ | share::WANT_NO_DELEG, 0).unwrap();
}

/// A server whose file system fails to truncate.
fn unyielding() -> World {
    let fs = memory();
    furnish(&*fs);
    let faults = Faults::new(1).fail(Verb::Setattr, Status::Io, When::Always);
    let fs: Arc<dyn Fs> = Arc::new(Layer::new(fs, faults));
    let export = export(1, "/srv/pub", &fs, Client::Everybody);
    World::of(Plan::new(HandleKey::new([7; 16]), vec![export]))
}

#[test]
fn an_open_whose_truncation_fails_changes_no_earlier_open() {
    let world = unyielding();
    let (mut one, mut two) = (Opener::new(&world, b"one"), Opener::new(&world, b"two"));
    let (stateid, _) = one.open(share::READ | share::WANT_NO_DELEG, 0).unwrap();
    assert_eq!(one.empty(share::BOTH), Err(Nfsstat4::Io));
    assert_eq!(one.read(stateid), HELLO, "its stateid is the same");
    let before = world.engine.census();
    assert_eq!(two.empty(share::BOTH), Err(Nfsstat4::Io));
    assert_eq!(world.engine.census(), before);
    let denying = two.open(share::READ | share::WANT_NO_DELEG, share::WRITE);
    assert!(denying.is_ok(), "nobody has it open for writing");
}
