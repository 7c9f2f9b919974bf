//! Layouts of files: the rules of their stateids, of ranges and iomodes, and their ends (RFC 8881,
//! 12.5).
#![allow(clippy::unwrap_used, clippy::panic)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, Caller, ChannelAttrs, Claim, Client, ClientOwner, Delegation, DelegationWish,
    Effect, Engine, Error, ExchangeId, FileKey, Io, LayoutIomode, LayoutScope, Open, Opened,
    Origin, Principal, Recovered, Sender, Settings, Share, StateDetails, Stateid, Verifier,
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

fn introduced(engine: &Engine, name: &[u8]) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: name.into() };
    let args = ExchangeId { owner, caller: CALLER, update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    engine.create_session(NOW, &session_of(&known, (CALLER, 1), ATTRS)).unwrap();
    let client = engine.client_by_id(known.clientid).unwrap();
    engine.reclaim_complete(NOW, &client, CALLER).unwrap();
    client
}

impl OneClient {
    fn new() -> Self {
        let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
        let client = introduced(&engine, b"client");
        Self { engine, client }
    }

    fn sender(&self) -> Sender<'_> {
        Sender { now: NOW, client: Some(&self.client), caller: CALLER }
    }

    fn open(&self, file: FileKey, access: u32) -> Stateid {
        self.open_with(file, access, DelegationWish::None).stateid
    }

    fn open_with(&self, file: FileKey, access: u32, wish: DelegationWish) -> Opened {
        let open = Open {
            client: &self.client,
            caller: CALLER,
            owner: b"owner",
            file,
            share: Share::access(access),
            claim: Claim::New,
            wish,
            user: None,
            grantee: None,
            empties: false,
        };
        self.engine.open(NOW, &open).unwrap()
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
        site.engine.layoutreturn_all((NOW, CALLER), &site.client, (scope, iomode)).unwrap();
        let mut left = site.layouts();
        left.sort_unstable();
        left
    };
    let in_one = LayoutScope::FileSystem(&file);
    assert_eq!(return_all(in_one, Some(READ)), [(0, 1), (0, 1), (1, 1)]);
    assert_eq!(return_all(in_one, None), [(1, 1)]);
    assert_eq!(return_all(LayoutScope::ServerBut(&[2, 1]), None), [(1, 1)], "of another type");
    assert_eq!(return_all(LayoutScope::ServerBut(&[2]), None), []);
}

#[test]
fn a_client_reports_errors_by_the_stateid_of_a_layout() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    let check = |file: &FileKey, stateid: &Stateid| {
        site.engine.check_layout((site.sender(), file), stateid)
    };
    assert_eq!(check(&file, &open), Err(Error::BadStateid));
    let reading = site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    assert_eq!(check(&file, &reading), Ok(false));
    let writing = site.get(&file, &reading, (READ_WRITE, bytes(0, 10))).unwrap();
    assert_eq!(check(&file, &writing), Ok(true));
    assert_eq!(check(&key(1, 2), &writing), Err(Error::BadStateid));
    site.give_back(&file, &writing, (None, ByteRange::ALL)).unwrap();
    assert_eq!(check(&file, &writing), Err(Error::BadStateid));
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

/// The totals tell administrators whether clients heed recalls.
#[test]
fn a_recalled_layout_counts_as_returned_however_its_client_gives_it_back() {
    type GiveBack = fn(&OneClient, &FileKey, (&Stateid, &Stateid));
    let ways: [GiveBack; 4] = [
        |site, file, (_, layout)| {
            site.give_back(file, layout, (None, ByteRange::ALL)).unwrap();
        },
        |site, _, _| {
            let all = (LayoutScope::ServerBut(&[]), None);
            site.engine.layoutreturn_all((NOW, CALLER), &site.client, all).unwrap();
        },
        |site, file, (open, _)| site.close(file, open),
        |site, _, (_, layout)| site.engine.layout_forgotten(NOW, &site.client, layout),
    ];
    for (number, give_back) in ways.into_iter().enumerate() {
        let (site, file) = (OneClient::new(), key(1, 1));
        let open = site.open(file, Share::BOTH);
        let layout = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
        assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
        let recalled = Stateid { seqid: 2, ..layout };
        site.engine.layout_recall_sent(NOW, &site.client, &recalled);
        give_back(&site, &file, (&open, &recalled));
        let totals = site.engine.totals();
        assert_eq!((totals.recalls_sent, totals.recalls_returned), (1, 1), "way {number}");
        assert!(!site.engine.has_layouts(), "way {number}");
    }
}

#[test]
fn a_layout_that_nobody_recalled_does_not_count_as_returned() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    let layout = site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    site.give_back(&file, &layout, (None, ByteRange::ALL)).unwrap();
    assert_eq!(site.engine.totals().recalls_returned, 0);
}

#[test]
fn a_recall_that_could_not_be_sent_ends_after_two_leases() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    let lease = site.engine.settings().lease;
    site.engine.tick(NOW + lease * 2 - Duration::from_secs(1));
    assert_eq!((site.engine.census().layouts, site.engine.totals().recalls_overdue), (1, 0));
    site.engine.tick(NOW + lease * 2);
    assert_eq!((site.engine.census().layouts, site.engine.totals().recalls_overdue), (0, 1));
    assert_eq!(site.engine.poll_fence(), Some(file));
}

#[test]
fn a_recall_that_is_sent_again_has_the_deadline_of_the_first() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    let lease = site.engine.settings().lease;
    let recalled = recalls(&site.engine);
    for now in [NOW, NOW + lease / 2] {
        recalled.iter().for_each(|it| site.engine.layout_recall_sent(now, &site.client, it));
    }
    site.engine.tick(NOW + lease);
    assert_eq!((site.engine.census().layouts, site.engine.totals().recalls_sent), (0, 1));
}

/// The other client is asked for its layout, and the one that makes the change keeps its own.
#[test]
fn a_change_recalls_the_layouts_of_others_and_evicts_those_whose_lease_has_expired() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::BOTH);
    let own = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    let other = introduced(&site.engine, b"other");
    let OneClient { engine, client } = site;
    let site = OneClient { engine, client: other };
    let open = site.open(file, Share::BOTH);
    let theirs = site.get(&file, &open, (READ_WRITE, ByteRange::ALL)).unwrap();
    let change = |now| site.engine.recall_layouts_if(now, Some(&client), &file, &|| true);
    assert_eq!(change(NOW), Err(Error::Delay));
    assert_eq!(recalls(&site.engine), [Stateid { seqid: 2, ..theirs }]);
    let late = NOW + site.engine.settings().lease + Duration::from_secs(1);
    assert_eq!(change(late), Err(Error::Delay), "its data servers have to refuse it first");
    assert!(site.engine.client_by_id(site.client.id()).is_none());
    assert_eq!(site.engine.poll_fence(), Some(file));
    site.engine.fenced(late, &file, true);
    assert_eq!(change(late), Ok(()));
    let sender = Sender { now: late, client: Some(&client), caller: CALLER };
    let left = site.engine.layoutreturn((sender, &file), &own, (None, ByteRange::ALL));
    assert_eq!(left, Ok(None), "its own layout was there still");
}

#[test]
fn a_layout_rests_on_a_delegation_after_the_close_and_ends_when_that_is_returned() {
    let (site, file) = (OneClient::new(), key(1, 1));
    site.engine.callbacks_work(&site.client);
    let open = site.open_with(file, Share::BOTH, DelegationWish::NoPreference);
    let Delegation::Granted { stateid: delegation, .. } = open.delegation else { panic!() };
    site.close(&file, &open.stateid);
    site.get(&file, &delegation, (READ_WRITE, ByteRange::ALL)).unwrap();
    assert_eq!(site.layouts(), [(0, 1)]);
    site.engine.delegreturn((site.sender(), &file), &delegation).unwrap();
    assert_eq!((site.layouts(), site.engine.poll_fence()), (vec![], None));
}

#[test]
fn a_question_whether_a_layout_would_be_given_gives_none() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let check = |iomode| site.engine.check_layoutget((site.sender(), &file), &open, iomode);
    assert_eq!((check(READ), check(READ_WRITE)), (Ok(()), Err(Error::Openmode)));
    assert!(!site.engine.has_layouts());
    site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    assert_eq!(change(&site, NOW, &file), Err(Error::Delay));
    assert_eq!(check(READ), Err(Error::RecallConflict));
}

#[test]
fn answers_about_states_that_are_no_layouts_and_files_without_a_fence_change_nothing() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    site.engine.layout_forgotten(NOW, &site.client, &open);
    site.engine.layout_recall_sent(NOW, &site.client, &open);
    assert_eq!(site.engine.test_stateid(site.sender(), &open), Ok(()));
    assert_eq!(site.engine.totals().recalls_sent, 0);
    site.engine.fenced(NOW, &file, true);
    site.engine.fenced(NOW, &key(1, 9), true);
    assert!(!site.engine.has_layouts(), "the count of layouts does not fall below zero");
}

/// The data servers of the other engine are others.
#[test]
fn layouts_stay_behind_when_their_client_moves_to_another_engine() {
    let (site, file) = (OneClient::new(), key(1, 1));
    let open = site.open(file, Share::READ);
    let layout = site.get(&file, &open, (READ, ByteRange::ALL)).unwrap();
    let to = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
    let exported = site.engine.export_client(NOW, &site.client).unwrap();
    let client = to.import_client(NOW, &exported).unwrap();
    assert!(!to.has_layouts());
    let tested = |stateid| to.test_stateid(Sender::of(NOW, &client), stateid);
    assert_eq!((tested(&open), tested(&layout)), (Ok(()), Err(Error::BadStateid)));
}
