use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use comity_backend::{Memory as MemoryFs, MemoryOptions};
use comity_export::{ExportRequest, Exports, HandleKey, RpcPeer, Source, Sources, load};
use comity_nfs4::{Callbacks, Clock, Dialed, Memory, Nfs4, ServerIdentity, Versions};
use comity_rpc::{Answered, Backchannel, Dispatcher, Program};
use comity_state::{Engine, Limits, Settings};
use comity_store::{MemoryMedium, Store};
use comity_vfs::{Fs, Mode};
use comity_xdr::Encoder;

/// The settings of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerSettings {
    pub(crate) lease: Duration,
    pub(crate) delegations: bool,
    pub(crate) versions: Versions,
    /// Memory for cached replies.
    pub(crate) reply_cache_bytes: usize,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let lease = Duration::from_secs(30);
        Self { lease, delegations: false, versions: Versions::ALL, reply_cache_bytes: 1 << 30 }
    }
}

/// A server that can stop and start again.
pub(crate) struct SimServer {
    exports: Arc<Exports>,
    medium: MemoryMedium,
    settings: ServerSettings,
    lives: u32,
    life: Option<Life>,
}

struct Life {
    engine: Arc<Engine>,
    callbacks: Arc<Callbacks>,
    nfs: Nfs4,
}

/// A connection on the server's side.
pub(crate) struct ServerEnd {
    pub(crate) line: Arc<Backchannel>,
    peer: RpcPeer,
    address: IpAddr,
}

impl ServerEnd {
    /// A connection from the client with this number.
    pub(crate) fn new(client: usize) -> Self {
        let line = Arc::new(Backchannel::new(|| {}));
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, client as u8 + 1));
        let peer = RpcPeer::on(SocketAddr::new(address, 700), &line);
        Self { line, peer, address }
    }

    /// The callbacks that the server wants to send, as records without marks.
    pub(crate) fn calls(&self) -> Vec<Vec<u8>> {
        let mut said = Encoder::new();
        self.line.take_into(&mut said);
        records(said.bytes())
    }
}

/// Splits a stream into records without marks.
pub(crate) fn records(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some((mark, behind)) = rest.split_first_chunk() {
        let length = (u32::from_be_bytes(*mark) & !(1 << 31)) as usize;
        let (record, behind) = behind.split_at(length);
        records.push(record.to_vec());
        rest = behind;
    }
    records
}

impl SimServer {
    /// Starts a server with an empty directory that all users may change.
    pub(crate) fn new(now: Duration, settings: ServerSettings) -> Self {
        let options = MemoryOptions { root_mode: Mode::new(0o777), ..MemoryOptions::default() };
        let fs: Arc<dyn Fs> = Arc::new(MemoryFs::new(options).unwrap());
        let exports = exports(&fs);
        let medium = MemoryMedium::default();
        let mut server = Self { exports, medium, settings, lives: 0, life: None };
        server.start(now);
        server
    }

    /// Starts the server again, with the contents of stable storage.
    pub(crate) fn start(&mut self, now: Duration) {
        self.lives += 1;
        let store = Arc::new(Store::on(self.medium.open()));
        let ServerSettings { lease, delegations, versions, reply_cache_bytes } = self.settings;
        let usual = Settings::new(self.lives, [7; 16]);
        let limits = Limits { reply_cache_bytes, ..usual.limits };
        let (grace, durable) = (lease, true);
        let settings = Settings { lease, grace, delegations, durable, limits, ..usual };
        let engine = Arc::new(Engine::new(now, settings, store.recovered()));
        let dial = |_: SocketAddr, done: Dialed| done(Err(std::io::Error::other("no dialing")));
        let callbacks = Arc::new(Callbacks::new(
            Arc::clone(&engine),
            Arc::clone(&self.exports),
            Box::new(dial),
            Box::new(|_| {}),
        ));
        let stored = Arc::clone(&engine);
        let memory = Memory {
            engine: Arc::clone(&engine),
            clock: Clock::begun(now),
            identity: ServerIdentity::alone(b"sim"),
            callbacks: Some(Arc::clone(&callbacks)),
            settle: Some(Arc::new(move |position| store.settle(&stored, position).is_ok())),
            pause: None,
            locals: None,
            copier: None,
        };
        let verifier = u64::from(self.lives).to_be_bytes();
        let nfs = Nfs4::new(Arc::clone(&self.exports), verifier, versions, memory);
        self.life = Some(Life { engine, callbacks, nfs });
    }

    /// Erases the stored client list, so that the next start has no grace period for these clients.
    pub(crate) fn forget_clients(&mut self) {
        self.medium = MemoryMedium::default();
    }

    pub(crate) fn stop(&mut self) {
        self.life = None;
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.life.is_some()
    }

    /// The server's engine of client state.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.life.as_ref().unwrap().engine
    }

    /// Handles a record; returns the reply without its mark, if there is one.
    pub(crate) fn hear(&self, now: Duration, end: &ServerEnd, record: &[u8]) -> Option<Vec<u8>> {
        let life = self.life.as_ref()?;
        if record.get(4..8) == Some(&[0, 0, 0, 1]) {
            life.callbacks.heard(now, end.line.id(), record);
            life.callbacks.pump(now);
            return None;
        }
        let nfs: Arc<dyn Program<RpcPeer>> = Arc::new(life.nfs.with_clock(Clock::begun(now)));
        let dispatcher = Dispatcher::new(vec![nfs], Arc::clone(&self.exports));
        let mut replies = Encoder::new();
        match dispatcher.answer(record, end.address, &end.peer, &mut replies) {
            Ok(Answered::Later(late)) => drop(late.finish(&mut replies)),
            Ok(Answered::Now) => {}
            _ => panic!("the server has no answer"),
        }
        life.callbacks.pump(now);
        records(replies.bytes()).pop()
    }

    /// Advances the server's clock.
    pub(crate) fn tick(&self, now: Duration) {
        if let Some(life) = &self.life {
            life.engine.tick(now);
            life.callbacks.tick(now);
        }
    }
}

fn exports(fs: &Arc<dyn Fs>) -> Arc<Exports> {
    let options = "*(rw,insecure,no_root_squash,dir_delegations=always:sole-writer)";
    let source = Source::export("sim", "/export".as_ref(), options);
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(fs));
    let loaded = load(&Sources::new(vec![source]), &open, HandleKey::new([7; 16]), None);
    Arc::new(Exports::new(loaded.unwrap_or_else(|found| panic!("{found:?}")).0))
}
