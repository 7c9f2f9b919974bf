//! A server in this process: two exports of memory backends, a third one that refuses the client,
//! and one client.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use comity_backend::{Memory, MemoryOptions};
use comity_coherence::Hosts;
use comity_credential::Channel;
use comity_export::{
    Client, Export, ExportId, Exports, HandleKey, Ids, Plan, RpcPeer, Rules, Squash,
};
use comity_nfs3::{Message, Mount, Nfs3, Nlm};
use comity_proto::nfs3::{Diropargs3, Lookup3res, Result3};
use comity_proto::{mount, nfs3, nlm, nsm};
use comity_rpc::{Answered, AuthSys, CallHeader, Dispatcher, Flavor, OpaqueAuth, Program};
use comity_state::{Engine, Recovered, Settings};
use comity_vfs::layers::{Faults, Layer, Recorder};
use comity_vfs::{BlockingHook, Fs, Gid, Mode, Time, Uid};
use comity_xdr::{Counted, Decode, Decoder, Encode, Encoder, Opaque};

pub(crate) const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
pub(crate) const VERIFIER: [u8; 8] = *b"verifier";
/// The time of the lock manager's clock.
pub(crate) const BEGUN: Duration = Duration::from_secs(1);

/// The number of answers of the lock manager that may wait until a test reads them.
const MESSAGES_MAX: usize = 8;

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
pub(crate) fn clock() -> Time {
    NOW.with(|now| now.set(now.get() + 1));
    Time { seconds: NOW.with(Cell::get), nanoseconds: 5 }
}

/// The settings of a world.
pub(crate) struct Ground {
    pub(crate) rules: Rules,
    pub(crate) faults: Faults,
    pub(crate) memory: MemoryOptions,
}

impl Default for Ground {
    fn default() -> Self {
        NOW.with(|now| now.set(1_000_000));
        let ids = Ids { squash: Squash::None, ..Ids::default() };
        let rules = Rules { read_only: false, secure: false, ids, ..Rules::default() };
        let memory = MemoryOptions {
            root_mode: Mode::new(0o777),
            root_uid: Uid::new(0),
            root_gid: Gid::new(0),
            bytes_max: 1 << 26,
            clock,
            ..MemoryOptions::default()
        };
        Self { rules, faults: Faults::new(1), memory }
    }
}

/// A server and its client.
pub(crate) struct World {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) exports: Arc<Exports>,
    /// The state of the lock manager.
    pub(crate) engine: Arc<Engine>,
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    messages: Receiver<Message>,
    visitor: RpcPeer,
    xid: Cell<u32>,
    credential: RefCell<Vec<u8>>,
    flavor: Cell<Flavor>,
    pub(crate) root: Vec<u8>,
    pub(crate) other: Vec<u8>,
}

/// A reply.
pub(crate) struct Reply {
    /// True if the reply waited for a slow operation.
    pub(crate) late: bool,
    /// The number of ranges of files that the reply refers to.
    pub(crate) by_reference: usize,
    /// `reply_stat` (0 accepted, 1 denied), and accept_stat or auth_stat (0: another RPC version).
    pub(crate) verdict: (u32, u32),
    /// The results.
    pub(crate) body: Vec<u8>,
}

impl World {
    pub(crate) fn new(ground: Ground) -> Self {
        let recorder = Arc::new(Recorder::default());
        let memory: Arc<dyn Fs> = Arc::new(Memory::new(ground.memory).unwrap());
        let faulty: Arc<dyn Fs> = Arc::new(Layer::new(memory, ground.faults));
        let fs: Arc<dyn Fs> = Arc::new(Layer::new(faulty, Arc::clone(&recorder)));
        Self::serving(fs, recorder, ground.rules, ground.memory)
    }

    pub(crate) fn serving(
        fs: Arc<dyn Fs>,
        recorder: Arc<Recorder>,
        rules: Rules,
        memory: MemoryOptions,
    ) -> Self {
        let second: Arc<dyn Fs> = Arc::new(Memory::new(memory).unwrap());
        let rules = Arc::new(rules);
        let export = |id, path: &str, fs: &Arc<dyn Fs>, client| {
            let clients = vec![(client, Arc::clone(&rules))];
            Arc::new(Export::new(ExportId(id), PathBuf::from(path), Arc::clone(fs), clients))
        };
        let stranger = Client::Address(IpAddr::V4(Ipv4Addr::new(10, 9, 8, 7)));
        let plan = Plan::new(
            HandleKey::new([7; 16]),
            vec![
                export(1, "/srv/pub", &fs, Client::Everybody),
                export(2, "/srv/other", &second, Client::Address(PEER)),
                export(3, "/srv/closed", &second, stranger),
            ],
        );
        let world = Self { recorder, ..Self::of(plan) };
        let (root, other) = (world.mount("/srv/pub"), world.mount("/srv/other"));
        Self { root, other, ..world }
    }

    /// A server with this plan; no client has mounted yet.
    pub(crate) fn of(plan: Plan) -> Self {
        Self::at(&Arc::new(Exports::new(plan)))
    }

    /// A server of these exports, for one of several clients.
    pub(crate) fn at(exports: &Arc<Exports>) -> Self {
        let engine = Arc::new(Engine::new(BEGUN, Settings::new(1, [7; 16]), Recovered::new()));
        let (sender, messages) = sync_channel(MESSAGES_MAX);
        let world = Self {
            recorder: Arc::default(),
            dispatcher: programs(exports, &engine, sender),
            messages,
            engine,
            exports: Arc::clone(exports),
            visitor: RpcPeer::new(SocketAddr::new(PEER, 40_000)),
            xid: Cell::new(1),
            credential: RefCell::default(),
            flavor: Cell::new(Flavor::SYS),
            root: Vec::new(),
            other: Vec::new(),
        };
        world.act_as(0, 0, &[]);
        world
    }

    /// The same client at a server that has been restarted with another verifier.
    pub(crate) fn restarted(self, verifier: [u8; 8]) -> Self {
        let nfs: Arc<dyn Program<RpcPeer>> =
            Arc::new(Nfs3::new(Arc::clone(&self.exports), verifier));
        self.speaking(vec![nfs])
    }

    /// The same server with more programs.
    pub(crate) fn with(self, mut programs: Vec<Arc<dyn Program<RpcPeer>>>) -> Self {
        programs.push(Arc::new(Nfs3::new(Arc::clone(&self.exports), VERIFIER)));
        self.speaking(programs)
    }

    /// The same client, connected to this address of the server.
    pub(crate) fn reached_at(self, local: IpAddr) -> Self {
        Self { visitor: self.visitor.at(Some(local)), ..self }
    }

    /// The same client, calling from this port.
    pub(crate) fn calling_from(self, port: u16) -> Self {
        Self { visitor: RpcPeer::new(SocketAddr::new(PEER, port)), ..self }
    }

    /// The same client, in whose name a server calls.
    pub(crate) fn called_by_a_server(self) -> Self {
        Self { visitor: self.visitor.confined_to([ExportId(1)]), ..self }
    }

    /// The same client, over a channel of this kind.
    pub(crate) fn by_channel(self, channel: Channel) -> Self {
        Self { visitor: self.visitor.over(channel), ..self }
    }

    /// The same server, which shares these hosts with a server of NFSv4.
    pub(crate) fn recalling(self, delegated: Hosts) -> Self {
        let nfs = Nfs3::new(Arc::clone(&self.exports), VERIFIER).recalling(delegated);
        self.speaking(vec![Arc::new(nfs)])
    }

    /// The same server, which runs work that may take long through this hook.
    pub(crate) fn blocking(self, hook: BlockingHook) -> Self {
        let nfs = Nfs3::new(Arc::clone(&self.exports), VERIFIER).blocking(hook);
        self.speaking(vec![Arc::new(nfs)])
    }

    fn speaking(self, programs: Vec<Arc<dyn Program<RpcPeer>>>) -> Self {
        let dispatcher = Dispatcher::new(programs, Arc::clone(&self.exports));
        Self { dispatcher, ..self }
    }

    pub(crate) fn act_as(&self, uid: u32, gid: u32, gids: &[u32]) {
        let (machine_name, gids) = (Opaque(&b"client"[..]), Counted(gids.to_vec()));
        *self.credential.borrow_mut() =
            encoded(&AuthSys { stamp: 1, machine_name, uid, gid, gids });
        self.flavor.set(Flavor::SYS);
    }

    /// The calls by which the lock manager has answered since this was last called.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.messages.try_iter().collect()
    }

    pub(crate) fn act_as_nobody(&self) {
        self.credential.borrow_mut().clear();
        self.flavor.set(Flavor::NONE);
    }

    /// A whole record: header and arguments.
    pub(crate) fn record(&self, program: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        let xid = self.xid.get();
        self.xid.set(xid + 1);
        let body = self.credential.borrow();
        let credential = OpaqueAuth { flavor: self.flavor.get(), body: Opaque(&body) };
        let verifier = OpaqueAuth::NONE;
        let version = match program {
            nlm::PROGRAM => nlm::VERSION,
            nsm::PROGRAM => nsm::VERSION,
            _ => 3,
        };
        let mut record =
            encoded(&CallHeader { xid, program, version, procedure, credential, verifier });
        record.extend_from_slice(arguments);
        record
    }

    pub(crate) fn send(&self, record: &[u8]) -> Reply {
        self.send_watching(record, &mut |_| {}).unwrap()
    }

    /// Sends a record. If the answer is held back, `promised` is called before it is waited for.
    pub(crate) fn send_watching(
        &self,
        record: &[u8],
        promised: &mut dyn FnMut(&Self),
    ) -> Option<Reply> {
        let mut replies = Encoder::new();
        let answered = self.dispatcher.answer(record, PEER, &self.visitor, &mut replies).ok()?;
        let late = match answered {
            Answered::Now | Answered::Refused(_) | Answered::StartTls => false,
            Answered::Never | Answered::Undecided => return None,
            Answered::Later(late) => {
                assert!(replies.bytes().is_empty(), "a part of the reply is sent too early");
                promised(self);
                late.finish(&mut replies);
                true
            }
        };
        Some(Reply {
            by_reference: replies.files().len(),
            ..split(&replies.flattened().unwrap(), late)
        })
    }

    /// Calls NFS; returns the results.
    pub(crate) fn call(&self, procedure: u32, arguments: &impl Encode) -> Vec<u8> {
        self.ask(procedure, &encoded(arguments))
    }

    /// Calls NFS with encoded arguments.
    pub(crate) fn ask(&self, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        let record = self.record(nfs3::PROGRAM, procedure, arguments);
        let reply = self.send(&record);
        assert_eq!(reply.verdict, (0, 0), "procedure {procedure}");
        reply.body
    }

    /// Calls MOUNT; returns the results.
    pub(crate) fn call_mount(&self, procedure: u32, arguments: &impl Encode) -> Vec<u8> {
        let record = self.record(mount::PROGRAM, procedure, &encoded(arguments));
        let reply = self.send(&record);
        assert_eq!(reply.verdict, (0, 0), "procedure {procedure}");
        reply.body
    }

    pub(crate) fn mount(&self, path: &str) -> Vec<u8> {
        let path = Opaque::<{ mount::PATH_BYTES_MAX }>(path.as_bytes());
        let body = self.call_mount(mount::procedure::MNT, &path);
        let mut decoder = Decoder::new(&body);
        assert_eq!(decoder.value(), Ok(mount::Mountstat3::Ok));
        decoder.value::<mount::MountOk<'_>>().unwrap().handle.0.to_vec()
    }

    /// The handle of a path in the first export, looked up by the superuser.
    pub(crate) fn handle(&self, path: &str) -> Vec<u8> {
        let (credential, flavor) = (self.credential.borrow().clone(), self.flavor.get());
        self.act_as(0, 0, &[]);
        let mut at = self.root.clone();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = self.find(&at, name).unwrap_or_else(|| panic!("no {name} on the way to {path}"));
        }
        *self.credential.borrow_mut() = credential;
        self.flavor.set(flavor);
        at
    }

    /// The handle of a name in a directory, or `None` if LOOKUP fails.
    pub(crate) fn find(&self, dir: &[u8], name: &str) -> Option<Vec<u8>> {
        let arguments = Diropargs3 { dir: Opaque(dir), name: Opaque(name.as_bytes()) };
        let body = self.call(nfs3::procedure::LOOKUP, &arguments);
        match Decoder::whole::<Lookup3res<'_>>(&body).unwrap() {
            Result3::Ok(found) => Some(found.object.0.to_vec()),
            Result3::Fail(..) => None,
        }
    }
}

fn programs(
    exports: &Arc<Exports>,
    engine: &Arc<Engine>,
    messages: SyncSender<Message>,
) -> Dispatcher<RpcPeer, Arc<Exports>> {
    let nfs: Arc<dyn Program<RpcPeer>> = Arc::new(Nfs3::new(Arc::clone(exports), VERIFIER));
    let mount: Arc<dyn Program<RpcPeer>> = Arc::new(Mount::new(Arc::clone(exports)));
    let nlm = Nlm::new(Arc::clone(exports), Arc::clone(engine), || BEGUN, Arc::new(|_| true));
    let nlm = nlm.messaging(messages);
    Dispatcher::new(vec![nfs, mount, Arc::new(nlm)], Arc::clone(exports))
}

fn split(record: &[u8], late: bool) -> Reply {
    let mut decoder = Decoder::new(record);
    let mut word = || decoder.value::<u32>().unwrap();
    let (mark, _xid, reply) = (word(), word(), word());
    assert_eq!(mark as usize, (1 << 31) | (record.len() - 4), "one whole record");
    assert_eq!(reply, 1);
    let verdict = match word() {
        0 => {
            assert_eq!((word(), word()), (0, 0), "an empty verifier");
            (0, word())
        }
        denied => match word() {
            0 => (denied, 0),
            _ => (denied, word()),
        },
    };
    Reply { late, by_reference: 0, verdict, body: decoder.rest().to_vec() }
}

pub(crate) fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

/// Decodes the whole of `body`.
pub(crate) fn decoded<'a, T: Decode<'a>>(body: &'a [u8]) -> T {
    Decoder::whole(body).expect("results as the RFC has them")
}
