//! Layouts of files: the rules of their stateids, of ranges and iomodes, and their ends (RFC 8881,
//! 12.5).
#![allow(clippy::unwrap_used, clippy::panic)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, Caller, ChannelAttrs, Claim, Client, ClientOwner, DelegationWish, Effect, Engine,
    Error, ExchangeId, FileKey, Io, LayoutIomode, LayoutScope, Open, Origin, Principal, Recovered,
    Sender, Settings, Share, StateDetails, Stateid, Verifier,
};
use comity_vfs::Handle;
use introduction::session_of;

const NOW: Duration = Duration::from_secs(1000);
const CALLER: Caller = Caller { principal: Principal(0), origin: Origin::from_bytes([0; 16]) };
const READ: LayoutIomode = LayoutIomode::Read;
const READ_WRITE: LayoutIomode = LayoutIomode::ReadWrite;
const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 4096,
    response_bytes_max: 4096,
    response_cached_bytes_max: 1024,
    operations_max: 8,
    requests_max: 2,
};

fn key(volume: u64, number: u8) -> FileKey {
    FileKey { volume, export: 1, handle: Handle::new(&[number]).unwrap() }
}

fn bytes(offset: u64, length: u64) -> ByteRange {
    ByteRange::new(offset, length).unwrap()
}

/// A server with one client that has a session.
struct OneClient {
    engine: Engine,
    client: Arc<Client>,
}

impl OneClient {
    fn new() -> Self {
        let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
        let owner = ClientOwner { verifier: Verifier([1; 8]), id: b"client"[..].into() };
        let args = ExchangeId { owner, caller: CALLER, update: false };
        let known = engine.exchange_id(NOW, args).unwrap();
        engine.create_session(NOW, &session_of(&known, (CALLER, 1), ATTRS)).unwrap();
        let client = engine.client_by_id(known.clientid).unwrap();
        engine.reclaim_complete(NOW, &client, CALLER).unwrap();
        Self { engine, client }
    }

    fn sender(&self) -> Sender<'_> {
        Sender { now: NOW, client: Some(&self.client), caller: CALLER }
    }

    fn open(&self, file: FileKey, access: u32) -> Stateid {
        let open = Open {
            client: &self.client,
            caller: CALLER,
            owner: b"owner",
            file,
            share: Share::access(access),
            claim: Claim::New,
            wish: DelegationWish::None,
            user: None,
            grantee: None,
            empties: false,
        };
        self.engine.open(NOW, &open).unwrap().stateid
    }

    fn close(&self, file: &FileKey, open: &Stateid) {
        self.engine.close((self.sender(), file), open).unwrap();
    }

    fn get(
        &self,
        file: &FileKey,
        stateid: &Stateid,
        wanted: (LayoutIomode, ByteRange),
    ) -> Result<Stateid, Error> {
        self.engine.layoutget((self.sender(), file), stateid, wanted)
    }

    fn give_back(
        &self,
        file: &FileKey,
        layout: &Stateid,
        returned: (Option<LayoutIomode>, ByteRange),
    ) -> Result<Option<Stateid>, Error> {
        self.engine.layoutreturn((self.sender(), file), layout, returned)
    }

    fn commit(&self, file: &FileKey, layout: &Stateid, range: ByteRange) -> Result<(), Error> {
        self.engine.check_layoutcommit((self.sender(), file), layout, range)
    }

    /// The numbers of ranges of all layouts.
    fn layouts(&self) -> Vec<(usize, usize)> {
        let states = self.engine.states_after(NOW, &self.client, (0, usize::MAX));
        let layouts = states.iter().filter_map(|state| match state.details {
            StateDetails::Layout { read, read_write } => Some((read, read_write)),
            _ => None,
        });
        layouts.collect()
    }
}

#[test]
fn the_seqid_of_a_layout_begins_at_one_and_counts_its_changes() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let first = site.get(&file, &open, (READ, bytes(0, 10))).unwrap();
    assert_eq!(first.seqid, 1);
    let again = site.get(&file, &open, (READ, bytes(20, 10))).unwrap();
    assert_eq!(again, Stateid { seqid: 2, ..first });
    let third = site.get(&file, &again, (READ, bytes(10, 10))).unwrap();
    assert_eq!(third.seqid, 3);
    assert_eq!(site.layouts(), [(1, 0)]);
    let fourth = site.give_back(&file, &third, (None, bytes(5, 5))).unwrap().unwrap();
    assert_eq!((fourth.seqid, site.layouts()), (4, vec![(2, 0)]));
}

#[test]
fn a_layout_is_asked_for_by_older_seqids_but_not_by_later_ones_or_zero() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let first = site.get(&file, &open, (READ, bytes(0, 1))).unwrap();
    site.get(&file, &first, (READ, bytes(1, 1))).unwrap();
    assert_eq!(site.get(&file, &first, (READ, bytes(2, 1))).unwrap().seqid, 3);
    let (ahead, behind) = (Error::BadStateid, Error::OldStateid);
    for (seqid, error) in [(0, ahead), (4, ahead), (1 << 30, ahead), (3 << 30, behind)] {
        let wrong = Stateid { seqid, ..first };
        let found = site.get(&file, &wrong, (READ, bytes(0, 1)));
        assert_eq!(found, Err(error), "{seqid}");
        let found = site.give_back(&file, &wrong, (None, ByteRange::ALL));
        assert_eq!(found, Err(error), "{seqid}");
    }
}

#[test]
fn a_layout_needs_an_open_for_its_access() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let refused = site.get(&file, &open, (READ_WRITE, ByteRange::ALL));
    assert_eq!(refused, Err(Error::Openmode));
    let layout = site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    let refused = site.get(&file, &layout, (READ_WRITE, ByteRange::ALL));
    assert_eq!(refused, Err(Error::Openmode));
    for special in [Stateid::ANONYMOUS, Stateid::READ_BYPASS] {
        let refused = site.get(&file, &special, (READ, ByteRange::ALL));
        assert_eq!(refused, Err(Error::BadStateid));
    }
}

#[test]
fn a_stateid_of_a_layout_is_refused_for_another_file_and_for_reading_at_the_server() {
    let (site, file, other) = (OneClient::new(), key(1, 1), key(1, 2));
    let open = site.open(file, Share::BOTH);
    site.open(other, Share::BOTH);
    let layout = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    let refused = site.get(&other, &layout, (READ, ByteRange::ALL));
    assert_eq!(refused, Err(Error::BadStateid));
    let io = Io { file: &file, access: Share::READ, user: None };
    let refused = site.engine.check_io(site.sender(), &layout, &io).map(drop);
    assert_eq!(refused, Err(Error::BadStateid));
    assert_eq!(site.commit(&other, &layout, bytes(0, 1)), Err(Error::BadStateid));
    assert_eq!(site.commit(&file, &open, bytes(0, 1)), Err(Error::BadStateid));
}

#[test]
fn a_commit_needs_a_layout_for_writing_all_of_its_range() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    let layout = site.get(&file, &open, (READ_WRITE, bytes(10, 10))).unwrap();
    assert_eq!(site.commit(&file, &layout, bytes(10, 10)), Ok(()));
    assert_eq!(site.commit(&file, &layout, bytes(10, 11)), Err(Error::BadLayout));
    site.give_back(&file, &layout, (Some(READ_WRITE), bytes(15, 1))).unwrap();
    assert_eq!(site.commit(&file, &layout, bytes(10, 10)), Err(Error::BadLayout));
    assert_eq!(site.layouts(), [(1, 2)]);
}

#[test]
fn a_layout_that_is_wholly_returned_has_no_stateid() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    let layout = site.get(&file, &open, (READ_WRITE, bytes(0, 10))).unwrap();
    let kept = site.give_back(&file, &layout, (Some(READ), ByteRange::ALL)).unwrap();
    assert_eq!(kept.map(|stateid| stateid.seqid), Some(2));
    assert_eq!(site.give_back(&file, &layout, (None, ByteRange::ALL)), Ok(None));
    let refused = site.give_back(&file, &layout, (None, ByteRange::ALL));
    assert_eq!(refused, Err(Error::BadStateid));
}

#[test]
fn all_layouts_of_a_file_system_are_returned_at_once() {
    let site = OneClient::new();
    for file in [key(1, 1), key(1, 2), key(2, 3)] {
        let open = site.open(file, Share::BOTH);
        site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
        site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    }
    let file = key(1, 9);
    let return_all = |scope, iomode| {
        site.engine.layoutreturn_all(NOW, &site.client, (scope, iomode)).unwrap();
        let mut left = site.layouts();
        left.sort_unstable();
        left
    };
    let in_one = LayoutScope::FileSystem(&file);
    assert_eq!(return_all(in_one, Some(READ)), [(0, 1), (0, 1), (1, 1)]);
    assert_eq!(return_all(in_one, None), [(1, 1)]);
    assert_eq!(return_all(LayoutScope::Server, None), []);
}

#[test]
fn a_layout_ends_with_the_last_open_of_the_file() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let layout = site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    site.close(&file, &open);
    assert_eq!(site.layouts(), []);
    site.open(file, Share::READ);
    let refused = site.get(&file, &layout, (READ, ByteRange::ALL));
    assert_eq!(refused, Err(Error::BadStateid));
}

#[test]
fn a_layout_with_too_many_ranges_gets_no_more_and_keeps_what_it_has() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let ranges = (0..).map(|number| bytes(2 * number, 1));
    let granted = ranges.map_while(|range| site.get(&file, &open, (READ, range)).ok());
    let granted = granted.take(100_000).count();
    assert!(granted < 100_000);
    let refused = site.get(&file, &open, (READ, bytes(1 << 40, 1)));
    assert_eq!(refused, Err(Error::Resource));
    assert_eq!(site.layouts(), [(granted, 0)]);
    site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    assert_eq!(site.layouts(), [(1, 0)]);
}

#[test]
fn the_memory_of_layouts_is_freed_at_their_end() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let before = site.engine.census().held_bytes;
    let open = site.open(file, Share::READ);
    for number in 0..50 {
        site.get(&file, &open, (READ, bytes(2 * number, 1))).unwrap();
    }
    site.close(&file, &open);
    assert_eq!(site.engine.census().held_bytes, before);
    site.engine.tick(NOW);
    assert_eq!(site.engine.census().files, 0);
}

#[test]
fn a_client_whose_lease_has_expired_has_no_layouts() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let layout = site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    site.engine.evict(NOW, &site.client);
    let refused = site.get(&file, &layout, (READ, ByteRange::ALL));
    assert_eq!(refused, Err(Error::Expired));
    site.engine.tick(NOW);
    assert_eq!(site.engine.poll_fence(), Some(file), "its data servers must refuse its handles");
    assert_eq!(site.engine.poll_fence(), None);
    assert!(site.engine.has_layouts());
    site.engine.fenced(NOW, &file, true);
    assert!(!site.engine.has_layouts());
    site.engine.tick(NOW);
    assert_eq!(site.engine.census().files, 0);
}

/// Takes the recalls of layouts that are to be sent.
fn recalls(engine: &Engine) -> Vec<Stateid> {
    let effects = std::iter::from_fn(|| engine.poll_effect());
    let stateid = |effect| match effect {
        Effect::RecallLayout { stateid, .. } => Some(stateid),
        _ => None,
    };
    effects.filter_map(stateid).collect()
}

fn change(site: &OneClient, now: Duration, file: &FileKey) -> Result<(), Error> {
    site.engine.recall_layouts_if(now, None, file, &|| true)
}

#[test]
fn a_change_waits_until_a_recalled_layout_is_returned() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    assert_eq!(change(&site, NOW, &file), Ok(()));
    let layout = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    assert!(site.engine.has_layouts());
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    let recalled = Stateid { seqid: layout.seqid + 1, ..layout };
    assert_eq!(recalls(&site.engine), [recalled], "the recall counts (RFC 8881, 12.5.3)");
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    assert_eq!(recalls(&site.engine), [], "one recall is enough");
    let refused = site.get(&file, &open, (READ, ByteRange::ALL));
    assert_eq!(refused, Err(Error::RecallConflict));
    assert_eq!(site.give_back(&file, &recalled, (None, ByteRange::ALL)), Ok(None));
    assert_eq!(change(&site, NOW, &file), Ok(()));
    assert_eq!(site.engine.poll_fence(), None, "a layout that was returned needs no fence");
    assert!(!site.engine.has_layouts());
}

#[test]
fn a_client_does_not_wait_for_its_own_layout_and_a_caller_without_rights_recalls_none() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    let own = site.engine.recall_layouts_if(NOW, Some(&site.client), &file, &|| true);
    assert_eq!(own, Ok(()));
    let refused = site.engine.recall_layouts_if(NOW, None, &file, &|| false);
    assert_eq!(refused, Err(Error::Perm));
    assert_eq!(recalls(&site.engine), []);
}

#[test]
fn no_layout_is_given_out_for_a_while_after_a_recall() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    let layout = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    site.give_back(&file, &layout, (None, ByteRange::ALL)).unwrap();
    let again = site.get(&file, &open, (READ, ByteRange::ALL));
    assert_eq!(again, Err(Error::LayoutTryLater));
    let later = Sender { now: NOW + Duration::from_secs(16), ..site.sender() };
    let again = site.engine.layoutget((later, &file), &open, (READ, ByteRange::ALL));
    assert_eq!(again.map(|layout| layout.seqid), Ok(1));
}

#[test]
fn a_layout_that_the_client_does_not_know_is_returned() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    let layout = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    let recalled = recalls(&site.engine);
    site.engine.layout_forgotten(NOW, &site.client, &layout);
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay), "an answer about an older layout");
    recalled.iter().for_each(|it| site.engine.layout_forgotten(NOW, &site.client, it));
    assert_eq!(change(&site, NOW, &file), Ok(()));
    assert_eq!(site.engine.poll_fence(), None);
}

#[test]
fn a_layout_that_is_not_returned_in_time_ends_and_the_change_waits_for_the_fence() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    let layout = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    let lease = site.engine.settings().lease;
    let recalled = recalls(&site.engine);
    recalled.iter().for_each(|it| site.engine.layout_recall_sent(NOW, &site.client, it));
    let late = NOW + lease - Duration::from_secs(1);
    assert_eq!(site.engine.layout_recalls(&site.client).len(), 1, "it is sent again");
    site.engine.tick(late);
    assert_eq!((site.layouts(), site.engine.poll_fence()), (vec![(0, 1)], None));
    let late = NOW + lease;
    site.engine.tick(late);
    assert_eq!(site.layouts(), []);
    let refused = site.give_back(&file, &layout, (None, ByteRange::ALL));
    assert_eq!(refused, Err(Error::BadStateid));
    assert_eq!(change(&site, late, &file), Err(Error::Delay), "the data servers do not know yet");
    let refused = site.get(&file, &open, (READ, ByteRange::ALL));
    assert_eq!(refused, Err(Error::RecallConflict));
    assert_eq!(site.engine.poll_fence(), Some(file));
    site.engine.fenced(late, &file, false);
    assert_eq!(change(&site, late, &file), Err(Error::Delay));
    assert_eq!(site.engine.poll_fence(), Some(file), "it is tried again");
    site.engine.fenced(late, &file, true);
    assert_eq!(change(&site, late, &file), Ok(()));
    assert!(!site.engine.has_layouts());
}
