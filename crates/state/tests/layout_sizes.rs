//! Sizes of files after layouts for writing: when data servers must be asked for them, and what
//! stable storage says meanwhile (RFC 8881, 12.5.4).
#![allow(clippy::unwrap_used)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, Caller, ChannelAttrs, Claim, Client, ClientOwner, DelegationWish, Engine, Error,
    ExchangeId, FileKey, LayoutIomode, Open, Origin, Principal, Record, Recovered, Sender,
    Settings, Share, Stateid, Verifier,
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

fn file() -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[1]).unwrap() }
}

/// A server that stores records.
struct Server(Engine);

/// A client with an open of the file.
struct Writer<'s> {
    server: &'s Server,
    client: Arc<Client>,
    open: Stateid,
}

impl Server {
    fn start(recovered: Recovered) -> Self {
        let settings = Settings { durable: true, ..Settings::new(1, [7; 16]) };
        Self(Engine::new(NOW, settings, recovered))
    }

    fn writer(&self, name: &[u8]) -> Writer<'_> {
        let owner = ClientOwner { verifier: Verifier([1; 8]), id: name.into() };
        let known = self.0.exchange_id(NOW, ExchangeId { owner, caller: CALLER, update: false });
        let known = known.unwrap();
        self.0.create_session(NOW, &session_of(&known, (CALLER, 1), ATTRS)).unwrap();
        let client = self.0.client_by_id(known.clientid).unwrap();
        self.0.reclaim_complete(NOW, &client, CALLER).unwrap();
        let open = Open {
            client: &client,
            caller: CALLER,
            owner: b"owner",
            file: file(),
            share: Share::access(Share::BOTH),
            claim: Claim::New,
            wish: DelegationWish::None,
            user: None,
            grantee: None,
            empties: false,
        };
        let open = self.0.open(NOW, &open).unwrap().stateid;
        Writer { server: self, client, open }
    }

    /// The records about sizes that are to be stored.
    fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let taken = self.0.poll_records(&mut records);
        self.0.stored(taken);
        records.retain(|it| matches!(it, Record::SizeOpen(_) | Record::SizeKnown(_)));
        records
    }

    /// Returns whether data servers have to be asked for the size of the file.
    fn must_ask(&self) -> bool {
        self.0.poll_size(NOW).is_some_and(|it| it == file())
    }

    fn asked(&self, done: bool) {
        self.0.size_asked(&file(), done);
    }

    /// Asserts that nothing is left to do, and that stable storage and the table forget the file.
    fn is_settled(&self) {
        assert!(!self.must_ask() && !self.0.is_size_doubtful(&file()));
        assert!(!self.0.may_be_written_by_layouts(&file()));
        assert_eq!(self.records(), [Record::SizeKnown(file())]);
        self.0.tick(NOW);
        assert_eq!(self.0.census().files, 0);
    }
}

impl Writer<'_> {
    fn at(&self) -> (Sender<'_>, &'static FileKey) {
        static FILE: std::sync::LazyLock<FileKey> = std::sync::LazyLock::new(file);
        (Sender { now: NOW, client: Some(&self.client), caller: CALLER }, &FILE)
    }

    fn layout(&self, iomode: LayoutIomode) -> Stateid {
        self.server.0.layoutget(self.at(), &self.open, (iomode, ByteRange::ALL)).unwrap()
    }

    fn commit(&self, layout: &Stateid) {
        self.server.0.layout_committed(self.at(), layout).unwrap();
    }

    fn give_back(&self, layout: &Stateid, iomode: Option<LayoutIomode>) -> Option<Stateid> {
        self.server.0.layoutreturn(self.at(), layout, (iomode, ByteRange::ALL)).unwrap()
    }

    fn close(&self) {
        self.server.0.close(self.at(), &self.open).unwrap();
    }
}

#[test]
fn a_file_is_recorded_once_while_layouts_for_writing_are_out() {
    let server = Server::start(Recovered::new());
    let (one, two) = (server.writer(b"one"), server.writer(b"two"));
    one.layout(READ);
    assert_eq!(server.records(), [], "no client can extend the file");
    assert!(!server.0.may_be_written_by_layouts(&file()));
    let layouts = [&one, &two].map(|writer| writer.layout(READ_WRITE));
    assert_eq!(server.records(), [Record::SizeOpen(file())]);
    one.commit(&layouts[0]);
    one.close();
    assert!(!server.must_ask());
    assert_eq!(server.records(), [], "the other client may still write");
    assert!(server.0.may_be_written_by_layouts(&file()));
    two.commit(&layouts[1]);
    assert_eq!(two.give_back(&layouts[1], None), None);
    two.close();
    server.is_settled();
}

#[test]
fn data_servers_are_asked_after_a_return_without_a_commit_until_they_answer() {
    let server = Server::start(Recovered::new());
    let writer = server.writer(b"client");
    let layout = writer.layout(READ_WRITE);
    assert_eq!(writer.give_back(&layout, None), None);
    writer.close();
    assert_eq!(server.records(), [Record::SizeOpen(file())]);
    assert!(server.0.is_size_doubtful(&file()));
    for _ in 0..2 {
        assert!(server.must_ask());
        assert!(!server.must_ask(), "it is being asked");
        assert!(server.0.is_size_doubtful(&file()));
        server.asked(false);
    }
    assert!(server.must_ask());
    server.asked(true);
    server.is_settled();
}

#[test]
fn a_range_for_writing_that_is_got_after_a_commit_needs_another_commit() {
    let server = Server::start(Recovered::new());
    let writer = server.writer(b"client");
    let layout = writer.layout(READ_WRITE);
    writer.commit(&layout);
    let layout = writer.layout(READ);
    assert!(writer.give_back(&layout, Some(READ_WRITE)).is_some(), "that for reading is left");
    assert!(!server.must_ask());
    let layout = writer.layout(READ_WRITE);
    writer.commit(&layout);
    let layout = writer.layout(READ_WRITE);
    assert!(writer.give_back(&layout, Some(READ_WRITE)).is_some());
    assert!(server.must_ask());
    server.asked(true);
    writer.close();
    assert_eq!(server.records().first(), Some(&Record::SizeOpen(file())));
}

#[test]
fn data_servers_are_asked_when_they_refuse_the_handles_of_a_client_that_was_evicted() {
    let server = Server::start(Recovered::new());
    let writer = server.writer(b"client");
    let layout = writer.layout(READ_WRITE);
    writer.commit(&layout);
    server.records();
    server.0.evict(NOW, &writer.client);
    assert!(!server.must_ask(), "writes may still come");
    assert!(server.0.may_be_written_by_layouts(&file()));
    assert_eq!(server.0.poll_fence(), Some(file()));
    server.0.fenced(NOW, &file(), false);
    assert!(!server.must_ask());
    server.0.fenced(NOW, &file(), true);
    assert!(server.must_ask(), "the client may have written after its commit");
    server.asked(true);
    server.is_settled();
}

#[test]
fn a_layout_that_ends_while_data_servers_are_asked_has_them_asked_again() {
    let server = Server::start(Recovered::new());
    let (one, two) = (server.writer(b"one"), server.writer(b"two"));
    let layouts = [&one, &two].map(|writer| writer.layout(READ_WRITE));
    one.give_back(&layouts[0], None);
    assert!(server.must_ask());
    two.give_back(&layouts[1], None);
    server.asked(true);
    assert!(server.must_ask(), "the second client may have written after the answer");
    server.asked(true);
    assert!(!server.must_ask());
}

#[test]
fn data_servers_are_asked_when_a_lease_expires_and_the_layout_stays() {
    let server = Server::start(Recovered::new());
    let writer = server.writer(b"client");
    let layout = writer.layout(READ_WRITE);
    writer.commit(&layout);
    server.records();
    let late = NOW + server.0.settings().lease * 2;
    server.0.tick(late);
    assert!(server.must_ask());
    server.asked(true);
    server.0.tick(late);
    assert!(!server.must_ask(), "a client that is still silent writes nothing more");
    assert_eq!((server.records(), server.0.census().layouts), (vec![], 1));
}

#[test]
fn after_a_restart_recorded_files_are_fenced_and_then_asked() {
    let mut stored = Recovered::new();
    stored.apply(Record::SizeOpen(file()));
    assert_eq!(stored.records().collect::<Vec<_>>(), [Record::SizeOpen(file())]);
    let server = Server::start(stored);
    assert!(!server.must_ask());
    let change = || server.0.recall_layouts_if(NOW, None, &file(), &|| true);
    assert_eq!(change(), Err(Error::Delay), "earlier clients may still write");
    assert_eq!(server.0.poll_fence(), Some(file()));
    server.0.fenced(NOW, &file(), true);
    assert_eq!(change(), Ok(()));
    assert!(server.must_ask());
    server.asked(true);
    assert!(!server.must_ask());
    assert_eq!(server.records(), [Record::SizeKnown(file())]);
}

#[test]
fn answers_about_other_files_change_nothing() {
    let server = Server::start(Recovered::new());
    server.asked(true);
    server.asked(false);
    assert!(!server.must_ask() && !server.0.is_size_doubtful(&file()));
    let writer = server.writer(b"client");
    let refused = server.0.layout_committed(writer.at(), &writer.open);
    assert_eq!(refused, Err(Error::BadStateid));
}
