//! A server in this process: exports of memory backends, one inside another, one that refuses the
//! client; and one client.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use comity_backend::{Memory, MemoryOptions};
use comity_credential::Channel;
use comity_export::{
    Client, Export, ExportId, Exports, HandleKey, Ids, Plan, RpcPeer, Rules, Squash,
};
use comity_idmap::{IdMapBuilder, MapDefault, OwnersBuilder, Range, Rule};
use comity_nfs4::{Callbacks, Clock, Copier, Copying, Nfs4, Versions};
use comity_proto::nfs4::{self, Nfsstat4};
use comity_rpc::{
    Answered, AuthSys, Backchannel, CallHeader, Dispatcher, Flavor, OpaqueAuth, Program,
};
use comity_state::{Engine, Limits, Locals, Recovered, Settings};
use comity_vfs::{BlockingHook, Create, Cred, Fs, Gid, Handle, Mode, Name, SetAttr, Time, Uid};
use comity_xdr::{Counted, Decoder, Encode, Encoder, Opaque};

pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
pub(crate) const VERIFIER: [u8; 8] = *b"verifier";

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_000_000) };
}

/// Sets the clock to this number of seconds.
pub(crate) fn set_clock(seconds: i64) {
    NOW.with(|now| now.set(seconds));
}

/// A clock that stands still.
pub(crate) fn still_clock() -> Time {
    Time { seconds: NOW.with(Cell::get), nanoseconds: 5 }
}

/// A clock that is a second later each time it is read.
fn clock() -> Time {
    NOW.with(|now| now.set(now.get() + 1));
    Time { seconds: NOW.with(Cell::get), nanoseconds: 5 }
}

/// A server and its client.
pub(crate) struct World {
    pub(crate) exports: Arc<Exports>,
    /// The state of clients.
    pub(crate) engine: Arc<Engine>,
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    peer: IpAddr,
    visitor: RpcPeer,
    xid: Cell<u32>,
    credential: RefCell<Vec<u8>>,
    flavor: Cell<Flavor>,
    memory: comity_nfs4::Memory,
    /// The connection over which clients are called back.
    pub(crate) line: Arc<Backchannel>,
    copies: Arc<Copies>,
}

/// Copies that are waiting to be made; `None` if the server takes none.
type Copies = Mutex<Option<Vec<Box<Copying>>>>;

impl World {
    /// A server with the exports `/srv/pub`, `/srv/pub/inner/own` inside it, `/srv/other` and, for
    /// other clients, `/srv/closed`. The first has a directory `inner/own`, a file `file` and a
    /// link `link`.
    pub(crate) fn new() -> Self {
        Self::full(Limits::DEFAULT, None)
    }

    /// The same server with these limits of its state.
    pub(crate) fn bearing(limits: Limits) -> Self {
        Self::full(limits, None)
    }

    /// The same server next to local programs.
    pub(crate) fn beside(locals: Arc<dyn Locals>) -> Self {
        Self::full(Limits::DEFAULT, Some(locals))
    }

    fn full(limits: Limits, locals: Option<Arc<dyn Locals>>) -> Self {
        NOW.with(|now| now.set(1_000_000));
        let (first, second, third) = (memory(), memory(), memory());
        furnish(&*first);
        let stranger = Client::Address(IpAddr::V4(Ipv4Addr::new(10, 9, 8, 7)));
        let exports = vec![
            export(1, "/srv/pub", &first, Client::Everybody),
            export(2, "/srv/pub/inner/own", &second, Client::Everybody),
            export(3, "/srv/other", &third, Client::Address(PEER)),
            export(4, "/srv/closed/far", &third, stranger),
        ];
        let exports = Arc::new(Exports::new(Plan::new(HandleKey::new([7; 16]), exports)));
        Self::made(&exports, comity_nfs4::Memory { locals, ..remembered(&exports, limits) })
    }

    /// A server with this plan.
    pub(crate) fn of(plan: Plan) -> Self {
        Self::at(&Arc::new(Exports::new(plan)))
    }

    /// A server of these exports, for one of several clients.
    pub(crate) fn at(exports: &Arc<Exports>) -> Self {
        Self::made(exports, remembered(exports, Limits::DEFAULT))
    }

    /// A server of this plan, whose clients answer OK to each callback while an operation waits.
    pub(crate) fn answering(plan: Plan) -> Self {
        let exports = Arc::new(Exports::new(plan));
        let memory = remembered(&exports, Limits::DEFAULT);
        let line: Arc<OnceLock<Arc<Backchannel>>> = Arc::default();
        let (callbacks, clock) = (Arc::clone(memory.callbacks.as_ref().unwrap()), memory.clock);
        let later = Arc::clone(&line);
        let pause = move |_| {
            let line = later.get().unwrap();
            for call in calls_on(line) {
                let reply = crate::callbacks::replied(&call, (Nfsstat4::Ok, &[]));
                assert!(callbacks.heard(clock.now(), line.id(), reply.bytes()));
            }
        };
        let memory = comity_nfs4::Memory { pause: Some(Arc::new(pause)), ..memory };
        let world = Self::made(&exports, memory);
        assert!(line.set(Arc::clone(&world.line)).is_ok());
        world
    }

    fn made(exports: &Arc<Exports>, memory: comity_nfs4::Memory) -> Self {
        let copies: Arc<Copies> = Arc::new(Mutex::new(Some(Vec::new())));
        let copier = Some(copier(&copies));
        let memory = comity_nfs4::Memory { copier, ..memory };
        let (exports, engine) = (Arc::clone(exports), Arc::clone(&memory.engine));
        let nfs = Nfs4::new(Arc::clone(&exports), VERIFIER, Versions::ALL, memory.clone());
        let nfs: Arc<dyn Program<RpcPeer>> = Arc::new(nfs);
        let line = Arc::new(Backchannel::new(|| {}));
        let world = Self {
            dispatcher: Dispatcher::new(vec![nfs], Arc::clone(&exports)),
            exports,
            engine,
            memory,
            peer: PEER,
            visitor: RpcPeer::on(SocketAddr::new(PEER, 1000), &line),
            line,
            copies,
            xid: Cell::new(1),
            credential: RefCell::default(),
            flavor: Cell::new(Flavor::SYS),
        };
        world.act_as(0, 0, &[]);
        world
    }

    /// The same server, which runs work that may take long through this hook.
    pub(crate) fn blocking(self, hook: BlockingHook) -> Self {
        let (exports, memory) = (Arc::clone(&self.exports), self.memory.clone());
        let nfs = Nfs4::new(exports, VERIFIER, Versions::ALL, memory).blocking(hook);
        let programs: Vec<Arc<dyn Program<RpcPeer>>> = vec![Arc::new(nfs)];
        let dispatcher = Dispatcher::new(programs, Arc::clone(&self.exports));
        Self { dispatcher, ..self }
    }

    /// The same server for a client at this address.
    pub(crate) fn seen_from(self, peer: IpAddr) -> Self {
        self.coming_from(SocketAddr::new(peer, 1000))
    }

    /// The same server for a client at this address and port.
    pub(crate) fn coming_from(self, peer: SocketAddr) -> Self {
        Self { peer: peer.ip(), visitor: RpcPeer::new(peer), ..self }
    }

    /// The same client, over a channel of this kind.
    pub(crate) fn by_channel(self, channel: Channel) -> Self {
        Self { visitor: self.visitor.over(channel), ..self }
    }

    /// From now on, calls come from another address of the client over the same connection.
    pub(crate) fn come_from(&mut self, peer: IpAddr) {
        self.peer = peer;
        self.visitor = RpcPeer::on(SocketAddr::new(peer, 1000), &self.line);
    }

    /// The callbacks that the server sends now, record by record.
    pub(crate) fn calls(&self) -> Vec<Vec<u8>> {
        let callbacks = self.memory.callbacks.as_ref().unwrap();
        callbacks.pump(self.memory.clock.now());
        calls_on(&self.line)
    }

    /// Lets the engine end leases and delegations whose time has passed.
    pub(crate) fn tick(&self) {
        let now = self.memory.clock.now();
        self.engine.tick(now);
        self.memory.callbacks.as_ref().unwrap().tick(now);
    }

    /// Takes a copy that is waiting to be made.
    pub(crate) fn take_copy(&self) -> Option<Box<Copying>> {
        self.copies.lock().unwrap().as_mut()?.pop()
    }

    /// Refuses copies from now on.
    pub(crate) fn take_no_copies(&self) {
        *self.copies.lock().unwrap() = None;
    }

    pub(crate) fn now(&self) -> Duration {
        self.memory.clock.now()
    }

    /// Lets time pass before the next calls.
    pub(crate) fn pass(&self, time: Duration) {
        self.memory.callbacks.as_ref().unwrap().tick(self.now() + time);
    }

    /// Gives the server a client's answer to a callback; returns whether it was waited for.
    pub(crate) fn hear(&self, record: &[u8]) -> bool {
        let callbacks = self.memory.callbacks.as_ref().unwrap();
        callbacks.heard(self.memory.clock.now(), self.line.id(), record)
    }

    pub(crate) fn act_as(&self, uid: u32, gid: u32, gids: &[u32]) {
        let (machine_name, gids) = (Opaque(&b"client"[..]), Counted(gids.to_vec()));
        *self.credential.borrow_mut() =
            encoded(&AuthSys { stamp: 1, machine_name, uid, gid, gids });
        self.flavor.set(Flavor::SYS);
    }

    /// Drops the last word of the credential's body.
    pub(crate) fn cut_credential(&self) {
        let mut body = self.credential.borrow_mut();
        let length = body.len() - 4;
        body.truncate(length);
    }

    pub(crate) fn act_under_flavor(&self, flavor: Flavor) {
        self.flavor.set(flavor);
    }

    pub(crate) fn act_as_nobody(&self) {
        self.credential.borrow_mut().clear();
        self.flavor.set(Flavor::NONE);
    }

    /// Sends the arguments of a COMPOUND; returns the results, and whether they waited for a
    /// barrier.
    pub(crate) fn compound(&self, arguments: &[u8]) -> (Vec<u8>, bool) {
        let (record, late) = self.send(arguments);
        (split(&record), late)
    }

    /// The xid of the last call.
    pub(crate) fn last_xid(&self) -> u32 {
        self.xid.get() - 1
    }

    /// Gives the next call the xid after this one.
    pub(crate) fn go_on_after(&self, xid: u32) {
        self.xid.set(xid + 1);
    }

    /// Sends the arguments of a COMPOUND; returns the whole reply with its record mark, and whether
    /// it waited for a barrier.
    pub(crate) fn send(&self, arguments: &[u8]) -> (Vec<u8>, bool) {
        let (program, version, procedure) = (nfs4::PROGRAM, nfs4::VERSION, 1);
        let xid = self.xid.replace(self.xid.get() + 1);
        let body = self.credential.borrow();
        let credential = OpaqueAuth { flavor: self.flavor.get(), body: Opaque(&body) };
        let verifier = OpaqueAuth::NONE;
        let header = CallHeader { xid, program, version, procedure, credential, verifier };
        let mut record = encoded(&header);
        record.extend_from_slice(arguments);
        let mut replies = Encoder::new();
        let answered = self.dispatcher.answer(&record, self.peer, &self.visitor, &mut replies);
        let late = match answered.unwrap() {
            Answered::Now | Answered::Refused(_) | Answered::StartTls => false,
            Answered::Never | Answered::Undecided => panic!("no answer"),
            Answered::Later(late) => {
                assert!(replies.bytes().is_empty(), "a part of the reply is sent too early");
                late.finish(&mut replies);
                true
            }
        };
        (replies.flattened().unwrap(), late)
    }
}

/// A copier that puts copies into this list.
fn copier(copies: &Arc<Copies>) -> Arc<Copier> {
    let copies = Arc::clone(copies);
    Arc::new(move |copying| match copies.lock().unwrap().as_mut() {
        Some(copies) => {
            copies.push(copying);
            Ok(())
        }
        None => Err(copying),
    })
}

/// The state of a server that has just been started for the first time.
fn remembered(exports: &Arc<Exports>, limits: Limits) -> comity_nfs4::Memory {
    let clock = Clock::start();
    let settings = Settings { limits, ..Settings::new(1, [7; 16]) };
    let engine = Engine::new(clock.now(), settings, Recovered::default());
    let engine = Arc::new(engine);
    let [owner, scope] = [b"server", b"common"].map(|name| name.as_slice().into());
    let identity = comity_nfs4::ServerIdentity { owner, scope };
    let (dial, others) = (Box::new(|_, _| {}), Box::new(|_| {}));
    let callbacks = Callbacks::new(Arc::clone(&engine), Arc::clone(exports), dial, others);
    let callbacks = Some(Arc::new(callbacks));
    let (settle, pause, locals, copier) = (None, None, None, None);
    comity_nfs4::Memory { engine, clock, identity, callbacks, settle, pause, locals, copier }
}

pub(crate) fn memory() -> Arc<dyn Fs> {
    let options = MemoryOptions {
        root_mode: Mode::new(0o755),
        root_uid: Uid::new(0),
        root_gid: Gid::new(0),
        bytes_max: 1 << 26,
        clock,
        ..MemoryOptions::default()
    };
    Arc::new(Memory::new(options).unwrap())
}

pub(crate) fn furnish(fs: &dyn Fs) {
    let (root, server) = (fs.root(), Cred::new(Uid::new(0), Gid::new(0)));
    let mode = |mode| SetAttr { mode: Some(Mode::new(mode)), ..SetAttr::default() };
    let dir = |at: &Handle, name: &[u8]| {
        fs.mkdir(&server, at, Name::new(name).unwrap(), &mode(0o755)).unwrap().value.handle
    };
    let inner = dir(&root, b"inner");
    dir(&inner, b"own");
    let how = Create::Guarded(mode(0o644));
    let file = fs.create(&server, &root, Name::new(b"file").unwrap(), &how).unwrap().value.handle;
    fs.write(&server, &file, 0, b"hello, world").unwrap();
    fs.symlink(&server, &root, Name::new(b"link").unwrap(), b"file", &mode(0o777)).unwrap();
}

/// Exports three furnished file systems. `/srv/site` is for a domain whose users and groups 1000 to
/// 1999 are 5000 to 5999 on the server, some with names; `/srv/strict` for one that denies all
/// other ids; `/srv/squashed` for one whose callers are all squashed.
pub(crate) fn sites() -> World {
    let range = |first| Range { first, last: first + 999 };
    let mut map = IdMapBuilder::default();
    map.add(Rule { wire: range(1000), disk: range(5000) }).unwrap();
    let map = map.build();
    let named = |users: &[(&str, u32)], groups: &[(&str, u32)]| {
        let mut names = OwnersBuilder::new("site.example").unwrap();
        for (name, id) in users {
            names.add_user(name, Uid::new(*id)).unwrap();
        }
        for (name, id) in groups {
            names.add_group(name, Gid::new(*id)).unwrap();
        }
        names.build()
    };
    let nobody = Cred::new(Uid::new(65_534), Gid::new(65_534));
    let site = Ids {
        squash: Squash::None,
        anonymous: nobody,
        users: map.clone(),
        groups: map,
        default: MapDefault::Pass,
        owners: named(&[("alice", 1000), ("far", 3000)], &[("staff", 1000)]),
    };
    let strict = Ids { default: MapDefault::Squash, ..site.clone() };
    let owners = named(&[("nobody", 65_534)], &[]);
    let squashed = Ids { squash: Squash::All, owners, ..Ids::default() };
    let export = |id, path: &str, ids| {
        let fs = memory();
        furnish(&*fs);
        let rules = Rules { read_only: false, ids, ..Rules::default() };
        let clients = vec![(Client::Everybody, Arc::new(rules))];
        Arc::new(Export::new(ExportId(id), PathBuf::from(path), fs, clients))
    };
    let exports = vec![
        export(1, "/srv/site", site),
        export(2, "/srv/squashed", squashed),
        export(3, "/srv/strict", strict),
    ];
    World::of(Plan::new(HandleKey::new([7; 16]), exports))
}

pub(crate) fn export(id: u32, path: &str, fs: &Arc<dyn Fs>, client: Client) -> Arc<Export> {
    let ids = Ids { squash: Squash::None, ..Ids::default() };
    let rules = Rules { read_only: false, ids, ..Rules::default() };
    let clients = vec![(client, Arc::new(rules))];
    Arc::new(Export::new(ExportId(id), PathBuf::from(path), Arc::clone(fs), clients))
}

fn split(record: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(record);
    let words: Vec<u32> = (0..7).map(|_| decoder.value().unwrap()).collect();
    assert_eq!(words[0] as usize, (1 << 31) | (record.len() - 4), "one whole record");
    assert_eq!(words[2..], [1, 0, 0, 0, 0], "an accepted reply");
    decoder.rest().to_vec()
}

pub(crate) fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

/// The callbacks that are queued on a connection, record by record.
fn calls_on(line: &Backchannel) -> Vec<Vec<u8>> {
    let mut said = Encoder::new();
    line.take_into(&mut said);
    let (mut rest, mut calls) = (said.bytes(), Vec::new());
    while let Some((mark, behind)) = rest.split_first_chunk() {
        let length = (u32::from_be_bytes(*mark) & !(1 << 31)) as usize;
        let (call, behind) = behind.split_at(length);
        calls.push(call.to_vec());
        rest = behind;
    }
    calls
}
