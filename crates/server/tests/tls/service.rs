//! A server with TLS that returns to a client the channel that it uses.

use std::fs::File;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use comity_credential::Channel;
use comity_rpc::{
    Admission, AuthStat, Backchannel, Call, Dispatcher, Done, Gate, Outcome, Program, Repeat,
};
use comity_server::{Endpoints, Server, Service, Settings};
use comity_tls::{Acceptor, ServerKey, Trust, self_made};
use comity_xdr::{Encoder, Opaque};

use crate::toy::{ECHO, FILE, NULL, PROGRAM, ZEROS};

/// Returns the channel of the caller as the log names it.
pub(crate) const CHANNEL: u32 = 20;

pub(crate) struct Peer {
    channel: Channel,
    line: Arc<Backchannel>,
}

/// The rules of the gate.
#[derive(Default)]
pub(crate) struct Rules {
    /// True if only peers with TLS may call.
    pub(crate) demands_tls: AtomicBool,
    /// True if no peer is listed by its address.
    pub(crate) lists_nobody: AtomicBool,
    /// True if the gate has not decided about any peer yet.
    pub(crate) is_undecided: AtomicBool,
}

impl Gate<Peer> for Rules {
    fn admits(&self, peer: &Peer) -> Admission {
        if self.is_undecided.load(Ordering::SeqCst) {
            return Admission::Undecided;
        }
        let is_weak = self.demands_tls.load(Ordering::SeqCst) && !peer.channel.is_tls();
        if is_weak { Admission::Refused(AuthStat::TooWeak) } else { Admission::Admitted }
    }

    fn starts_tls(&self, peer: &Peer) -> bool {
        !peer.channel.is_tls()
    }
}

struct Echo(Option<Arc<File>>);

impl Program<Peer> for Echo {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn procedure_name(&self, _: u32, _: u32) -> &'static str {
        "ECHO"
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, peer: &Peer, reply: &mut Encoder) -> Outcome {
        let number = call.arguments::<u32>().unwrap_or(0);
        match (call.header.procedure, &self.0) {
            (NULL, _) => {}
            (ECHO, _) => match call.arguments::<Opaque<'_, { 2 << 20 }>>() {
                Ok(bytes) => reply.value(&bytes),
                Err(_) => return Outcome::GarbageArgs,
            },
            (FILE, Some(file)) => reply.file(Arc::clone(file), 0, number),
            (ZEROS, _) => reply.raw(&vec![0; number as usize]),
            (CHANNEL, _) => reply.raw(peer.channel.to_string().as_bytes()),
            _ => return Outcome::ProcUnavail,
        }
        Outcome::Done(Done::default())
    }
}

pub(crate) struct Telling {
    dispatcher: Dispatcher<Peer, Arc<Rules>>,
    pub(crate) rules: Arc<Rules>,
}

impl Service for Telling {
    type Visitor = Peer;
    type Gate = Arc<Rules>;

    fn lists(&self, _: std::net::IpAddr) -> bool {
        !self.rules.lists_nobody.load(Ordering::SeqCst)
    }

    fn visitor(&self, _: Endpoints, line: &Arc<Backchannel>) -> Peer {
        Peer { channel: Channel::Plain, line: Arc::clone(line) }
    }

    fn secured(&self, peer: &Peer, channel: Channel) -> Option<Peer> {
        Some(Peer { channel, line: Arc::clone(&peer.line) })
    }

    fn dispatcher(&self) -> &Dispatcher<Peer, Arc<Rules>> {
        &self.dispatcher
    }
}

/// A self-signed key of a server.
pub(crate) fn server_key() -> ServerKey {
    let made = self_made(&["server.example".to_owned()], None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, made.certificate).unwrap();
    std::fs::write(&key, made.key).unwrap();
    ServerKey::read(&certificate, &key).unwrap()
}

pub(crate) fn settings() -> Settings {
    let acceptor = Acceptor::new(&server_key(), Trust::default()).unwrap();
    Settings { tls: Some(Arc::new(acceptor)), ..crate::toy::settings() }
}

pub(crate) fn start(file: Option<File>, settings: Settings) -> Server<Telling> {
    let rules = Arc::<Rules>::default();
    let program = Arc::new(Echo(file.map(Arc::new)));
    let dispatcher = Dispatcher::new(vec![program as _], Arc::clone(&rules));
    Server::start(Telling { dispatcher, rules }, settings).unwrap()
}
