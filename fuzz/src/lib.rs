//! The server of the fuzz targets: no sockets, over the memory backend.

mod granting;
mod locksmith;
mod results;
mod session;
mod strangers;
mod tls;
mod town;
mod volume;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{
    Diagnostic, ExportRequest, Exports, HandleKey, Plan, Resolver, RpcPeer, Source, Sources,
    Unresolved, load,
};
use comity_nfs3::{Mount, Nfs3};
use comity_nfs4::{Clock, Nfs4, ServerIdentity, Versions};
use comity_proto::nfs4::CompoundHead;
use comity_proto::{mount, nfs3, nfs4};
use comity_rpc::{Answered, AuthSys, CallHeader, Dispatcher, Flavor, OpaqueAuth, Program};
use comity_state::{Engine, Recovered, Settings};
use comity_vfs::Fs;
use comity_xdr::{Counted, Encoder, Opaque};

pub use granting::GrantingServer;
pub use locksmith::Locksmith;
pub use strangers::Strangers;
pub use tls::Eavesdropped;
pub use town::Town;
pub use volume::{sections_of, volume_bytes};

/// The address of callers, with a privileged port.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 700);

/// Bytes that stand for a handle in the arguments of a call: its length and name. The two bytes
/// after them say which of the handles seen so far it is.
pub const HANDLE: [u8; 6] = [0, 0, 0, 4, b'f', b'h'];

/// Most handles that are remembered.
const HANDLES_MAX: usize = 256;

/// A resolver that knows no host.
struct Nobody;

impl Resolver for Nobody {
    fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, Unresolved> {
        Ok(Vec::new())
    }

    fn name(&self, _: IpAddr) -> Result<String, Unresolved> {
        Ok("host.example.org".into())
    }
}

/// Reads a configuration and opens an empty file system for each export.
///
/// # Errors
/// The fault found in it.
pub fn plan(source: Source) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut sources = Sources::new(vec![source]);
    sources.resolver = Arc::new(Nobody);
    sources.netgroups = PathBuf::from("/nonexistent");
    let open = |_: &ExportRequest<'_>| Ok(Arc::new(memory()) as Arc<dyn Fs>);
    load(&sources, &open, HandleKey::new([7; 16]), None)
}

fn memory() -> Memory {
    let options = MemoryOptions {
        bytes_max: 8 << 20,
        nodes_max: 1000,
        file_size_max: 1 << 40,
        ..MemoryOptions::default()
    };
    Memory::new(options).expect("an empty file system")
}

/// A server that answers one caller.
pub struct TestServer {
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    visitor: RpcPeer,
    handles: Vec<Vec<u8>>,
    xid: u32,
    session: Option<session::Session>,
}

impl TestServer {
    /// A server with one export, /export, open to all, and its handle.
    ///
    /// # Panics
    /// If it cannot even be mounted.
    #[must_use]
    pub fn new() -> Self {
        let text = b"/export *(rw,insecure,no_root_squash)\n".to_vec();
        let (plan, _) = plan(Source::Text { name: "fuzz".into(), text }).expect("a plan");
        let exports = Arc::new(Exports::new(plan));
        let four = Nfs4::new(Arc::clone(&exports), [1; 8], Versions::ALL, nobody_known());
        let programs: Vec<Arc<dyn Program<RpcPeer>>> = vec![
            Arc::new(Nfs3::new(Arc::clone(&exports), [1; 8])),
            Arc::new(four),
            Arc::new(Mount::new(Arc::clone(&exports))),
        ];
        let dispatcher = Dispatcher::new(programs, exports);
        let mut server = Self {
            dispatcher,
            visitor: RpcPeer::new(PEER),
            handles: Vec::new(),
            xid: 0,
            session: None,
        };
        let mut path = Encoder::new();
        path.opaque(b"/export");
        server.call((mount::PROGRAM, 3), mount::procedure::MNT, path.bytes());
        assert_eq!(server.handles.len(), 1, "the export mounts");
        server
    }

    /// Makes every call of an input: a byte for the procedure, two for the length of the arguments,
    /// the arguments.
    pub fn calls(&mut self, program: u32, mut input: &[u8]) {
        while let [procedure, high, low, rest @ ..] = input {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
            let (arguments, behind) = rest.split_at(length);
            self.call((program, 3), u32::from(*procedure), arguments);
            input = behind;
        }
    }

    /// Sends every COMPOUND of an input: a byte for the minor version, whose highest bit asks for a
    /// SEQUENCE in front; a byte for the number of operations, two for their length, the
    /// operations.
    pub fn compounds(&mut self, mut input: &[u8]) {
        while let [minor, count, high, low, rest @ ..] = input {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
            let (operations, behind) = rest.split_at(length);
            let in_session = minor & 0x80 != 0;
            let minorversion = u32::from(minor & 0x7f);
            let count = u32::from(*count) + u32::from(in_session);
            let mut arguments = Encoder::new();
            let tag = Opaque(&b""[..]);
            arguments.value(&CompoundHead { tag, minorversion, operations: count });
            if in_session {
                self.sequence(&mut arguments);
            }
            arguments.raw(operations);
            self.call((nfs4::PROGRAM, 4), nfs4::procedure::COMPOUND, arguments.bytes());
            input = behind;
        }
    }

    /// Calls a version of a program; gives the whole reply.
    fn call(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Vec<u8> {
        self.xid += 1;
        let arguments = filled(arguments, &self.handles);
        let record = call_record(self.xid, program, procedure, &arguments);
        let mut replies = Encoder::new();
        match self.dispatcher.answer(&record, PEER.ip(), &self.visitor, &mut replies) {
            Ok(Answered::Later(late)) => drop(late.finish(&mut replies)),
            Ok(Answered::Now) => {}
            Ok(Answered::Refused(why)) => panic!("a listed peer is refused: {why:?}"),
            Ok(Answered::Never | Answered::Undecided) => panic!("a call without an answer"),
            Ok(Answered::StartTls) => panic!("TLS that was not offered"),
            Err(hangup) => panic!("a call that is none: {hangup}"),
        }
        assert_one_reply(&record, &replies);
        self.remember(replies.bytes());
        replies.bytes().to_vec()
    }

    /// Remembers the handles in a reply, which are recognized by their first bytes.
    fn remember(&mut self, reply: &[u8]) {
        let known = self.handles.first().cloned();
        for at in (0..reply.len().saturating_sub(8)).step_by(4) {
            let length = u32::from_be_bytes(reply[at..at + 4].try_into().unwrap()) as usize;
            let Some(handle) = reply.get(at + 4..at + 4 + length) else { continue };
            let alike = match &known {
                Some(root) => handle.len() == root.len() && handle[..5] == root[..5],
                None => length > 16 && length <= nfs3::HANDLE_BYTES_MAX as usize,
            };
            let new = !self.handles.iter().any(|other| other == handle);
            if alike && new && self.handles.len() < HANDLES_MAX {
                self.handles.push(handle.to_vec());
            }
        }
    }
}

/// Replaces placeholders in arguments by real handles, which no input can guess.
fn filled(arguments: &[u8], handles: &[Vec<u8>]) -> Vec<u8> {
    let mut filled = Encoder::new();
    let mut rest = arguments;
    while let Some((first, behind)) = rest.split_first() {
        match rest.strip_prefix(&HANDLE) {
            Some([high, low, behind @ ..]) if !handles.is_empty() => {
                let index = usize::from(u16::from_be_bytes([*high, *low]));
                filled.opaque(&handles[index % handles.len()]);
                rest = behind;
            }
            _ => {
                filled.raw(std::slice::from_ref(first));
                rest = behind;
            }
        }
    }
    filled.bytes().to_vec()
}

/// A whole call, as root by AUTH_SYS.
fn call_record(xid: u32, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Vec<u8> {
    call_record_as(0, xid, program, procedure, arguments)
}

/// The same call as a user.
fn call_record_as(
    uid: u32,
    xid: u32,
    (program, version): (u32, u32),
    procedure: u32,
    arguments: &[u8],
) -> Vec<u8> {
    let mut body = Encoder::new();
    body.value(&AuthSys {
        stamp: 0,
        machine_name: Opaque(b"fuzz"),
        uid,
        gid: uid,
        gids: Counted(vec![4, 24]),
    });
    let credential = OpaqueAuth { flavor: Flavor::SYS, body: Opaque(body.bytes()) };
    let verifier = OpaqueAuth::NONE;
    let mut record = Encoder::new();
    record.value(&CallHeader { xid, program, version, procedure, credential, verifier });
    record.raw(arguments);
    record.bytes().to_vec()
}

/// A server that knows no client yet.
fn nobody_known() -> comity_nfs4::Memory {
    let clock = Clock::start();
    let engine = Engine::new(clock.now(), Settings::new(1, [7; 16]), Recovered::default());
    let (engine, identity) = (Arc::new(engine), ServerIdentity::alone(b"fuzz"));
    let (callbacks, settle, pause) = (None, None, None);
    let (locals, copier) = (None, None);
    comity_nfs4::Memory { engine, clock, identity, callbacks, settle, pause, locals, copier }
}

impl Default for TestServer {
    fn default() -> Self {
        Self::new()
    }
}

/// Checks that the replies are empty, or are one whole record with the xid of the call.
///
/// # Panics
/// They are not.
pub fn assert_one_reply(record: &[u8], replies: &Encoder) {
    let bytes = replies.bytes();
    if bytes.is_empty() {
        return;
    }
    let header = u32::from_be_bytes(bytes[..4].try_into().unwrap());
    assert_eq!(header, 1 << 31 | (bytes.len() as u32 - 4), "one last fragment");
    assert_eq!(bytes[4..8], record[..4], "the xid of the call");
}
