//! Copies that continue after the reply to COPY: when they do, how progress and end are reported,
//! and what ends them early.

use std::sync::Arc;
use std::time::Duration;

use comity_export::{Client, Exports, HandleKey, Plan};
use comity_nfs4::{Copying, Progress, limits};
use comity_proto::nfs4::callback::{
    CbCompoundHead, CbCompoundResultHead, CbOffload4head, CbResultHead, CbSequence4args,
    CbSequence4resok, ReferringCall4, operation as cb,
};
use comity_proto::nfs4::{
    Copy4args, Copy4resok, Nfsstat4, OffloadStatus4resok, StableHow4, Stateid4, WriteResponse4,
    operation as op,
};
use comity_rpc::OpaqueAuth;
use comity_state::{Claim, DelegationWish, FileKey, Open, Sender, SessionId, Share, Stateid};
use comity_vfs::{Create, Cred, Fs, Gid, Handle, Mode, Name, ReadInto, SetAttr, Uid};
use comity_xdr::{Counted, Decoder, Opaque};

use crate::callbacks::{accepted, client, go_to, open, perform};
use crate::session::Session;
use crate::world::{VERIFIER, World, export, furnish, memory};

/// The length of a copy that continues after its reply.
const LENGTH: u64 = limits::COPY_LONG_BYTES + 5;

/// The number of bytes that the memory backend copies at a time.
const PIECE: u64 = 1 << 20;

/// A server with a long file and an empty one, and a client.
struct Ground {
    fs: Arc<dyn Fs>,
    world: World,
    session: Session,
    target: Handle,
}

impl Ground {
    fn new() -> Self {
        let fs = memory();
        furnish(&*fs);
        let (server, root) = (Cred::new(Uid::new(0), Gid::new(0)), fs.root());
        let file = fs.lookup(&server, &root, Name::new(b"file").unwrap()).unwrap().node.handle;
        for at in (0..LENGTH).step_by(1 << 20) {
            let data = vec![letter(at); (LENGTH - at).min(1 << 20) as usize];
            fs.write(&server, &file, at, &data).unwrap();
        }
        let how = SetAttr { mode: Some(Mode::new(0o644)), ..SetAttr::default() };
        let name = Name::new(b"twin").unwrap();
        let made = fs.create(&server, &root, name, &Create::Guarded(how)).unwrap();
        let plan = plan(&fs);
        let world = World::at(&Arc::new(Exports::new(plan)));
        let session = client(&world, 2, b"copier");
        Self { fs, world, session, target: made.value.handle }
    }

    /// Asks for a copy of the whole file.
    fn copy(&mut self, synchronous: bool) -> (Nfsstat4, Option<Copy4resok>) {
        self.copy_of((0, Stateid4::ANONYMOUS), synchronous)
    }

    /// Asks for a copy of `count` bytes to a file that is open under this stateid.
    fn copy_of(
        &mut self,
        (count, dst_stateid): (u64, Stateid4),
        synchronous: bool,
    ) -> (Nfsstat4, Option<Copy4resok>) {
        let args = Copy4args {
            src_stateid: Stateid4::ANONYMOUS,
            dst_stateid,
            src_offset: 0,
            dst_offset: 0,
            count,
            consecutive: true,
            synchronous,
            source_server: Counted(Vec::new()),
        };
        let (status, told) = perform(&self.world, 2, &mut self.session, 10, |call| {
            go_to(call, &[b"srv", b"pub", b"file"]);
            call.value(&op::SAVEFH);
            go_to(call, &[b"srv", b"pub", b"twin"]);
            call.value(&op::COPY);
            call.value(&args);
        });
        let results = told.get(4 * 20..).filter(|_| status == Nfsstat4::Ok);
        (status, results.map(|results| Decoder::new(results).value().unwrap()))
    }

    /// Asks for a copy, which must continue after the reply.
    fn begin(&mut self) -> (Stateid4, Box<Copying>) {
        self.begin_by(Stateid4::ANONYMOUS)
    }

    /// Asks for a copy to a file that is open under this stateid; it must continue after the reply.
    fn begin_by(&mut self, dst_stateid: Stateid4) -> (Stateid4, Box<Copying>) {
        let (status, told) = self.copy_of((0, dst_stateid), false);
        assert_eq!(status, Nfsstat4::Ok);
        let told = told.unwrap();
        assert_eq!((told.response.count, told.requirements.synchronous), (0, false));
        let stateid = told.response.callback_id.expect("it goes on later");
        (stateid, self.world.take_copy().expect("somebody makes it"))
    }

    /// Sends OFFLOAD_STATUS or OFFLOAD_CANCEL about a copy to a file.
    fn ask(&mut self, number: u32, file: &[u8], stateid: &Stateid4) -> (Nfsstat4, Vec<u8>) {
        let (status, told) = perform(&self.world, 2, &mut self.session, 5, |call| {
            go_to(call, &[b"srv", b"pub", file]);
            call.value(&number);
            call.value(stateid);
        });
        (status, told.get(4 * 10..).unwrap_or_default().to_vec())
    }

    fn status(&mut self, stateid: &Stateid4) -> Result<(u64, Option<Nfsstat4>), Nfsstat4> {
        match self.ask(op::OFFLOAD_STATUS, b"twin", stateid) {
            (Nfsstat4::Ok, told) => {
                let told: OffloadStatus4resok = Decoder::new(&told).value().unwrap();
                Ok((told.count, told.complete))
            }
            (status, _) => Err(status),
        }
    }

    fn cancel(&mut self, stateid: &Stateid4) -> Nfsstat4 {
        self.ask(op::OFFLOAD_CANCEL, b"twin", stateid).0
    }

    /// The client opens the target for writing as another open-owner of the same user.
    fn open(&self) -> Stateid {
        let engine = &self.world.engine;
        let session = engine.session(&SessionId(self.session.id())).unwrap();
        let (client, owner, claim) = (session.client(), &b"user"[..], Claim::New);
        let (file, wish) = (self.key(), DelegationWish::None);
        let share = Share::access(Share::WRITE);
        let (caller, user, grantee, empties) = (client.caller(), None, None, false);
        let open = Open { client, caller, owner, file, share, claim, wish, user, grantee, empties };
        engine.open(self.world.now(), &open).unwrap().stateid
    }

    fn close(&self, stateid: &Stateid) {
        let engine = &self.world.engine;
        let session = engine.session(&SessionId(self.session.id())).unwrap();
        let sender = Sender::of(self.world.now(), session.client());
        engine.close((sender, &self.key()), stateid).unwrap();
    }

    fn key(&self) -> FileKey {
        FileKey { volume: self.fs.volume(&self.target), export: 1, handle: self.target }
    }

    /// Returns the length of the target, whose bytes must equal those of the source.
    fn there(&self) -> u64 {
        let server = Cred::new(Uid::new(0), Gid::new(0));
        let mut bytes = Vec::new();
        let mut into = ReadInto::new(&mut bytes);
        self.fs.read(&server, &self.target, 0, u32::MAX, &mut into).unwrap();
        let right = bytes.iter().enumerate().all(|(at, byte)| *byte == letter(at as u64));
        assert!(right, "the bytes are the source's");
        bytes.len() as u64
    }

    /// The only callback that is sent now, which must be the end of the copy.
    fn said(&self) -> Said {
        let mut calls = self.world.calls();
        assert_eq!(calls.len(), 1, "one thing is said");
        Said::read(calls.remove(0))
    }
}

fn plan(fs: &Arc<dyn Fs>) -> Plan {
    Plan::new(HandleKey::new([7; 16]), vec![export(1, "/srv/pub", fs, Client::Everybody)])
}

/// The byte at an offset of the source.
const fn letter(at: u64) -> u8 {
    b'a' + (at >> 20) as u8 % 26
}

/// A CB_OFFLOAD.
struct Said {
    call: Vec<u8>,
    sequence: CbSequence4args,
    stateid: Stateid4,
    /// The number of bytes that were copied, and the status that ended the copy if it failed.
    outcome: Result<WriteResponse4, (Nfsstat4, u64)>,
}

impl Said {
    fn read(call: Vec<u8>) -> Self {
        let mut rest = Decoder::new(&call[6 * 4..]);
        rest.value::<OpaqueAuth<'_>>().unwrap();
        rest.value::<OpaqueAuth<'_>>().unwrap();
        let head: CbCompoundHead<'_> = rest.value().unwrap();
        assert_eq!((head.minorversion, head.operations), (2, 2));
        assert_eq!(rest.value::<u32>().unwrap(), cb::CB_SEQUENCE);
        let sequence = rest.value().unwrap();
        assert_eq!(rest.value::<u32>().unwrap(), cb::CB_OFFLOAD);
        let CbOffload4head { fh, stateid } = rest.value().unwrap();
        assert!(!fh.0.is_empty(), "the client knows the file by this");
        let outcome = match rest.value().unwrap() {
            Nfsstat4::Ok => Ok(rest.value().unwrap()),
            status => Err((status, rest.value().unwrap())),
        };
        rest.finish().unwrap();
        Self { sequence, stateid, outcome, call }
    }

    /// The client answers the callback.
    fn answer(&self, world: &World, status: Nfsstat4) {
        let status = status as u32;
        let mut reply = accepted(&self.call);
        reply.value(&CbCompoundResultHead { status, tag: Opaque(b""), results: 2 });
        reply.value(&CbResultHead { operation: cb::CB_SEQUENCE, status: 0 });
        reply.value(&CbSequence4resok {
            sessionid: self.sequence.sessionid,
            sequenceid: self.sequence.sequenceid,
            slotid: self.sequence.slotid,
            highest_slotid: 0,
            target_highest_slotid: 0,
        });
        reply.value(&CbResultHead { operation: cb::CB_OFFLOAD, status });
        assert!(world.hear(reply.bytes()), "it was waited for");
    }
}

fn finish(copying: &mut Copying) {
    for _ in 0..99 {
        if copying.go_on() == Progress::Over {
            return;
        }
    }
    panic!("it does not end");
}

#[test]
fn a_long_copy_is_answered_before_it_is_made_and_its_end_is_notified() {
    let mut ground = Ground::new();
    let (stateid, mut copying) = ground.begin();
    assert_eq!((ground.there(), stateid.seqid), (0, 1));
    assert!(ground.world.calls().is_empty());
    assert_eq!(copying.go_on(), Progress::More);
    assert_eq!(ground.there(), PIECE);
    finish(&mut copying);
    assert_eq!(ground.there(), LENGTH);
    let said = ground.said();
    let (callback_id, count, committed) = (None, LENGTH, StableHow4::Unstable);
    let response = WriteResponse4 { callback_id, count, committed, writeverf: VERIFIER };
    assert_eq!((said.stateid, said.outcome), (stateid, Ok(response)));
}

#[test]
fn the_notice_of_its_end_names_the_request_whose_reply_may_arrive_later() {
    let mut ground = Ground::new();
    let (_, mut copying) = ground.begin();
    finish(&mut copying);
    let lists = ground.said().sequence.referring_call_lists.0;
    let calls =
        lists.iter().flat_map(|list| list.calls.0.iter().map(|call| (list.sessionid, *call)));
    let call = ReferringCall4 { sequenceid: ground.session.seqid(), slotid: 0 };
    assert_eq!(calls.collect::<Vec<_>>(), [(ground.session.id(), call)]);
}

#[test]
fn the_progress_of_a_copy_is_reported_until_the_client_knows_its_end() {
    let mut ground = Ground::new();
    let (stateid, mut copying) = ground.begin();
    assert_eq!(ground.status(&stateid), Ok((0, None)));
    copying.go_on();
    assert_eq!(ground.status(&stateid), Ok((PIECE, None)));
    finish(&mut copying);
    assert_eq!(ground.status(&stateid), Ok((LENGTH, Some(Nfsstat4::Ok))));
    ground.said().answer(&ground.world, Nfsstat4::Ok);
    assert_eq!(ground.status(&stateid), Err(Nfsstat4::BadStateid));
}

#[test]
fn a_copy_is_found_by_its_file_its_client_and_its_whole_stateid() {
    let mut ground = Ground::new();
    let (stateid, _copying) = ground.begin();
    let mut other = client(&ground.world, 2, b"other");
    for number in [op::OFFLOAD_STATUS, op::OFFLOAD_CANCEL] {
        assert_eq!(ground.ask(number, b"file", &stateid).0, Nfsstat4::BadStateid);
        for seqid in [0, 2, u32::MAX] {
            let changed = Stateid4 { seqid, ..stateid };
            assert_eq!(ground.ask(number, b"twin", &changed).0, Nfsstat4::BadStateid, "{seqid}");
        }
        std::mem::swap(&mut ground.session, &mut other);
        assert_eq!(ground.ask(number, b"twin", &stateid).0, Nfsstat4::BadStateid);
        std::mem::swap(&mut ground.session, &mut other);
    }
    assert_eq!(ground.status(&stateid), Ok((0, None)));
}

#[test]
fn a_copy_is_cancelled_by_the_user_who_asked_for_it_and_by_no_other() {
    let mut ground = Ground::new();
    let (stateid, mut copying) = ground.begin();
    ground.world.act_as(1000, 1000, &[]);
    assert_eq!(ground.cancel(&stateid), Nfsstat4::BadStateid);
    assert_eq!(copying.go_on(), Progress::More);
    ground.world.act_as(0, 0, &[]);
    assert_eq!(ground.status(&stateid), Ok((PIECE, None)));
    assert_eq!(ground.cancel(&stateid), Nfsstat4::Ok);
}

#[test]
fn a_cancelled_copy_writes_nothing_more_and_is_not_notified() {
    let mut ground = Ground::new();
    let (stateid, mut copying) = ground.begin();
    copying.go_on();
    assert_eq!(ground.cancel(&stateid), Nfsstat4::Ok);
    assert_eq!(copying.go_on(), Progress::Over);
    assert_eq!(ground.there(), PIECE);
    assert!(ground.world.calls().is_empty());
    assert_eq!(ground.status(&stateid), Err(Nfsstat4::BadStateid));
    assert_eq!(ground.cancel(&stateid), Nfsstat4::BadStateid);
}

#[test]
fn a_notice_that_a_client_has_not_acknowledged_is_sent_again() {
    let mut ground = Ground::new();
    let (stateid, mut copying) = ground.begin();
    finish(&mut copying);
    ground.said().answer(&ground.world, Nfsstat4::Delay);
    assert!(ground.world.calls().is_empty(), "not at once");
    ground.world.pass(Duration::from_secs(limits::CALLBACK_RETRY_SECONDS + 1));
    let again = ground.said();
    assert_eq!(again.stateid, stateid);
    again.answer(&ground.world, Nfsstat4::Ok);
    ground.world.pass(Duration::from_secs(limits::CALLBACK_SECONDS + 2));
    assert!(ground.world.calls().is_empty());
}

#[test]
fn a_short_or_synchronous_copy_is_made_at_once() {
    let mut ground = Ground::new();
    let short = (limits::COPY_LONG_BYTES - 1, Stateid4::ANONYMOUS);
    let told = ground.copy_of(short, false).1.unwrap();
    assert!(told.response.callback_id.is_none() && told.requirements.synchronous);
    let told = ground.copy(true).1.unwrap();
    assert!(told.response.callback_id.is_none() && told.requirements.synchronous);
    assert!(told.response.count > 0 && ground.world.take_copy().is_none());
}

#[test]
fn a_copy_for_a_client_without_a_back_channel_is_made_at_once() {
    let mut ground = Ground::new();
    ground.session = Session::of(&ground.world, 2, b"mute");
    perform(&ground.world, 2, &mut ground.session, 1, |call| {
        call.value(&op::RECLAIM_COMPLETE);
        call.value(&false);
    });
    let told = ground.copy(false).1.unwrap();
    assert!(told.response.callback_id.is_none() && told.requirements.synchronous);
    assert!(told.response.count > 0 && ground.world.take_copy().is_none());
}

#[test]
fn copies_above_the_limit_are_made_at_once() {
    let mut ground = Ground::new();
    ground.world.take_no_copies();
    let told = ground.copy(false).1.unwrap();
    assert!(told.response.callback_id.is_none() && told.response.count > 0);
}

#[test]
fn a_copy_has_no_more_rights_than_a_write_of_that_moment() {
    let mut ground = Ground::new();
    let (stateid, mut copying) = ground.begin();
    copying.go_on();
    let stranger = Client::Address([10, 9, 8, 7].into());
    let closed = export(1, "/srv/pub", &ground.fs, stranger);
    ground.world.exports.replace(Plan::new(HandleKey::new([7; 16]), vec![closed]));
    finish(&mut copying);
    let part = PIECE;
    let said = ground.said();
    assert_eq!((said.stateid, said.outcome), (stateid, Err((Nfsstat4::Access, part))));
    assert_eq!(ground.there(), part);
}

/// Another open of a file changes the seqid of its stateid, but it stands for the same open.
#[test]
fn a_copy_continues_through_changes_of_its_open_until_the_file_is_closed() {
    let mut ground = Ground::new();
    let Stateid { seqid, other } = ground.open();
    let (_, mut copying) = ground.begin_by(Stateid4 { seqid, other });
    assert_eq!(copying.go_on(), Progress::More);
    let again = ground.open();
    assert_eq!((again.seqid, again.other), (seqid + 1, other));
    assert_eq!(copying.go_on(), Progress::More);
    ground.close(&again);
    assert_eq!(copying.go_on(), Progress::Over);
    assert_eq!(ground.said().outcome, Err((Nfsstat4::BadStateid, 2 * PIECE)));
}

#[test]
fn a_copy_waits_for_a_delegation_to_be_given_back() {
    let mut ground = Ground::new();
    let (_, mut copying) = ground.begin();
    let mut writer = client(&ground.world, 2, b"writer");
    assert_eq!(open(&ground.world, 2, &mut writer), (Nfsstat4::Ok, true));
    assert_eq!(copying.go_on(), Progress::Later);
    assert_eq!((ground.there(), ground.world.calls().len()), (0, 1), "it is recalled");
    assert_eq!(copying.go_on(), Progress::Later);
}

#[test]
fn copies_of_a_client_end_with_it() {
    let mut ground = Ground::new();
    let (_, mut copying) = ground.begin();
    copying.go_on();
    let engine = &ground.world.engine;
    let session = engine.session(&SessionId(ground.session.id())).unwrap();
    engine.evict(ground.world.now(), session.client());
    assert_eq!(copying.go_on(), Progress::Over);
    assert_eq!(ground.there(), PIECE);
    assert!(ground.world.calls().is_empty());
}

#[test]
fn a_copy_that_is_dropped_by_the_server_has_failed() {
    let mut ground = Ground::new();
    let (stateid, copying) = ground.begin();
    drop(copying);
    let said = ground.said();
    assert_eq!((said.stateid, said.outcome), (stateid, Err((Nfsstat4::ServerFault, 0))));
}
