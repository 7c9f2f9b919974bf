//! A server of this project in this process, over a socket. It serves any file system and can be
//! restarted.
#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use comity_backend::{Memory as MemoryFs, MemoryOptions};
use comity_export::{ExportRequest, Exports, HandleKey, RpcPeer, Source, Sources, load};
use comity_nfs3::{Mount, Nfs3};
use comity_nfs4::{Callbacks, Clock, Dialed, Memory, Nfs4, ServerIdentity, Versions};
use comity_remote::{ClientIdentity, MountOptions, Mounted, Tcp, mount};
use comity_rpc::{Admission, Backchannel, Call, Dispatcher, Gate, Layer, Outcome, Program};
use comity_server::{Endpoints, Patience, Server, Service, Settings as ServerSettings};
use comity_state::{Engine, Settings};
use comity_store::{MemoryMedium, Store};
use comity_vfs::{Cred, Disk, Fs, Gid, Handle, Mode, Name, SetAttr, Uid};
use comity_xdr::Encoder;

/// The exported path.
pub(crate) const PATH: &str = "/export";

/// A server.
pub(crate) struct TestServer {
    fs: Arc<dyn Fs>,
    medium: MemoryMedium,
    settings: TestSettings,
    address: SocketAddr,
    life: AtomicU64,
    running: Option<Running>,
}

/// The settings of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestSettings {
    pub(crate) lease: Duration,
    pub(crate) grace: Duration,
    pub(crate) delegations: bool,
    pub(crate) versions: Versions,
}

impl Default for TestSettings {
    fn default() -> Self {
        let (lease, grace) = (Duration::from_secs(30), Duration::from_secs(30));
        Self { lease, grace, delegations: true, versions: Versions::ALL }
    }
}

struct Running {
    server: Server<Programs>,
    memory: Memory,
    _ticking: Arc<()>,
}

impl TestServer {
    /// Serves a new file system in memory.
    pub(crate) fn start() -> Self {
        Self::with(TestSettings::default())
    }

    /// Serves a new file system in memory with other settings.
    pub(crate) fn with(settings: TestSettings) -> Self {
        let options = MemoryOptions { root_mode: Mode::new(0o777), ..MemoryOptions::default() };
        Self::over(Arc::new(MemoryFs::new(options).unwrap()), settings)
    }

    /// Serves a file system.
    pub(crate) fn over(fs: Arc<dyn Fs>, settings: TestSettings) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (medium, life) = (MemoryMedium::default(), AtomicU64::new(0));
        let mut server = Self { fs, medium, settings, address: any, life, running: None };
        server.resume();
        server
    }

    /// Ends the server and all its connections.
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.server.shutdown();
        }
    }

    /// Starts the server again with the contents of its stable storage.
    pub(crate) fn resume(&mut self) {
        let listener = TcpListener::bind(self.address).unwrap();
        self.address = listener.local_addr().unwrap();
        let life = self.life.fetch_add(1, Ordering::Relaxed) + 1;
        let exports = exports(&self.fs);
        let memory = memory(&self.medium, &exports, self.settings, life as u32);
        let programs = Programs::new(exports, memory.clone(), life, self.settings.versions);
        let patience = Patience { drain_seconds: 1, ..Patience::default() };
        let settings = ServerSettings {
            event_loops: 1,
            threads_max: 16,
            patience,
            ..ServerSettings::default()
        };
        let server = Server::start_with(programs, settings, vec![listener]).unwrap();
        let ticking = Arc::new(());
        tick(memory.clone(), Arc::downgrade(&ticking));
        self.running = Some(Running { server, memory, _ticking: ticking });
    }

    /// Serves another file system from the next start on; returns the one that was served.
    pub(crate) fn exchange(&mut self, fs: Arc<dyn Fs>) -> Arc<dyn Fs> {
        std::mem::replace(&mut self.fs, fs)
    }

    pub(crate) fn restart(&mut self) {
        self.stop();
        self.resume();
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the clients' state.
    pub(crate) fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.running.as_ref().unwrap().memory.engine)
    }

    /// Returns the time of that state.
    pub(crate) fn now(&self) -> Duration {
        self.running.as_ref().unwrap().memory.clock.now()
    }

    /// Mounts the server's export.
    pub(crate) fn mount(&self, options: MountOptions) -> Mounted {
        mount(Box::new(Tcp::from(self.address)), &options.at(PATH)).unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The usual options, as root.
pub(crate) fn options(owner: &str) -> MountOptions {
    MountOptions::new(ClientIdentity::new(owner).unwrap(), root())
}

pub(crate) fn root() -> Cred<Disk> {
    cred(0, 0)
}

pub(crate) fn cred(uid: u32, gid: u32) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(gid))
}

pub(crate) fn name(name: &str) -> Name<'_> {
    Name::new(name.as_bytes()).unwrap()
}

pub(crate) fn mode(bits: u32) -> SetAttr<Disk> {
    SetAttr { mode: Some(Mode::new(bits)), ..SetAttr::default() }
}

/// Creates a file with some data directly in the served file system.
pub(crate) fn file(fs: &dyn Fs, at: &str, data: &[u8]) -> Handle {
    let how = comity_vfs::Create::Guarded(mode(0o666));
    let made = fs.create(&root(), &fs.root(), name(at), &how).unwrap().value;
    fs.write(&root(), &made.handle, 0, data).unwrap();
    made.handle
}

/// Waits until a condition holds, and panics after a minute.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("this did not happen: {what}");
}

fn exports(fs: &Arc<dyn Fs>) -> Arc<Exports> {
    let options = "*(rw,insecure,no_root_squash,dir_delegations=always:sole-writer)";
    let source = Source::export("test", PATH.as_ref(), options);
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(fs));
    let loaded = load(&Sources::new(vec![source]), &open, HandleKey::new([7; 16]), None);
    Arc::new(Exports::new(loaded.unwrap_or_else(|found| panic!("{found:?}")).0))
}

fn memory(
    medium: &MemoryMedium,
    exports: &Arc<Exports>,
    settings: TestSettings,
    boot: u32,
) -> Memory {
    let store = Arc::new(Store::on(medium.open()));
    let clock = Clock::start();
    let TestSettings { lease, grace, delegations, .. } = settings;
    let settings =
        Settings { lease, grace, delegations, durable: true, ..Settings::new(boot, [7; 16]) };
    let engine = Arc::new(Engine::new(clock.now(), settings, store.recovered()));
    let dial = |_: SocketAddr, done: Dialed| done(Err(std::io::Error::other("nobody is dialed")));
    let callbacks =
        Callbacks::new(Arc::clone(&engine), Arc::clone(exports), Box::new(dial), Box::new(|_| {}));
    let stored = Arc::clone(&engine);
    Memory {
        engine,
        clock,
        identity: ServerIdentity::alone(b"test server"),
        callbacks: Some(Arc::new(callbacks)),
        settle: Some(Arc::new(move |position| store.settle(&stored, position).is_ok())),
        pause: None,
        locals: None,
        copier: None,
    }
}

/// Advances the server's time while it runs.
fn tick(memory: Memory, running: Weak<()>) {
    thread::spawn(move || {
        while running.strong_count() > 0 {
            thread::sleep(Duration::from_millis(50));
            memory.engine.tick(memory.clock.now());
            memory.callbacks.as_ref().unwrap().tick(memory.clock.now());
        }
    });
}

/// The programs of the server.
pub(crate) struct Programs {
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    exports: Arc<Exports>,
    memory: Memory,
    /// True while replies to callbacks are dropped.
    _deaf: AtomicBool,
}

impl Programs {
    fn new(exports: Arc<Exports>, memory: Memory, life: u64, versions: Versions) -> Self {
        let verifier = life.to_be_bytes();
        let four = Nfs4::new(Arc::clone(&exports), verifier, versions, memory.clone());
        let four = CallingBack { program: four, memory: memory.clone() };
        let programs: Vec<Arc<dyn Program<RpcPeer>>> = vec![
            Arc::new(Nfs3::new(Arc::clone(&exports), verifier)),
            Arc::new(Mount::new(Arc::clone(&exports))),
            Arc::new(four),
        ];
        let dispatcher = Dispatcher::new(programs, Arc::clone(&exports));
        Self { dispatcher, exports, memory, _deaf: AtomicBool::new(false) }
    }
}

impl Service for Programs {
    type Visitor = RpcPeer;
    type Gate = Arc<Exports>;

    fn lists(&self, peer: IpAddr) -> bool {
        self.exports.admits(&peer) == Admission::Admitted
    }

    fn visitor(&self, ends: Endpoints, line: &Arc<Backchannel>) -> RpcPeer {
        RpcPeer::on(ends.peer, line).at(ends.local.map(|local| local.ip()))
    }

    fn dispatcher(&self) -> &Dispatcher<RpcPeer, Arc<Exports>> {
        &self.dispatcher
    }

    fn heard(&self, visitor: &RpcPeer, record: &[u8]) -> bool {
        let heard = self.memory.callbacks.as_ref().zip(visitor.line());
        heard.is_some_and(|(callbacks, line)| {
            callbacks.heard(self.memory.clock.now(), line.id(), record)
        })
    }
}

/// A program that calls clients back after their calls.
struct CallingBack {
    program: Nfs4,
    memory: Memory,
}

impl Layer<RpcPeer> for CallingBack {
    type Inner = Nfs4;

    fn inner(&self) -> &Nfs4 {
        &self.program
    }

    fn answer(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        let outcome = self.program.call(call, visitor, reply);
        if self.memory.engine.has_effects() {
            self.memory.callbacks.as_ref().unwrap().pump(self.memory.clock.now());
        }
        outcome
    }
}
