//! A server to which keys submit credentials.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use comity_backend::{Memory, MemoryOptions};
use comity_credential::{Channel, CredentialRef, KeyId, PeerIdentity, PeerKey};
use comity_export::{
    Client, Door, Export, ExportId, Exports, HandleKey, KeyUse, Plan, RpcPeer, Rules, View,
};
use comity_granting::GrantProgram;
use comity_grants::{Accounts, Binding, Grants, Moment, ObjectId, Recovered, ServerKey, Unstored};
use comity_keynote::{Grant, Rights};
use comity_keys::{Algorithm, PrivateKey, Signer};
use comity_proto::grants::{PROGRAM, VERSION, procedure};
use comity_rpc::{Answered, Dispatcher, Program};
use comity_vfs::{Cred, Fs, Gid, Handle, Mode, Name, SetAttr, Uid};
use comity_xdr::Encoder;

use crate::{assert_one_reply, call_record};

const PEER: ([u8; 4], u16) = ([192, 0, 2, 7], 700);
/// A moment at which all credentials hold.
const NOW: Moment = Moment(1_800_000_000_000);
const ALICE: u32 = 1000;
/// If this bit of a procedure number is set, the arguments are made from a text.
const MADE: u8 = 0x80;

/// The keys of Alice, who has an account, of Bob, who has none, and of the server.
static KEYS: LazyLock<[PrivateKey; 3]> =
    LazyLock::new(|| [(); 3].map(|()| PrivateKey::generate(Algorithm::Ed25519).expect("a key")));

/// A server with the directories `shared`, which Alice has granted to Bob, and `secret`, which she
/// has not. Bob calls it.
pub struct GrantingServer {
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    exports: Arc<Exports>,
    bob: RpcPeer,
    credential: String,
    xid: u32,
}

impl GrantingServer {
    /// The server, to which nothing was submitted.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new() -> Self {
        let fs = Arc::new(Memory::new(MemoryOptions::default()).expect("an empty file system"));
        let (shared, made) = (mkdir(&fs, b"shared"), mkdir(&fs, b"made"));
        mkdir(&fs, b"secret");
        let [alice, bob, server] = &*KEYS;
        let grants = Grants::new(Box::new(|| NOW), Box::new(Unstored), Recovered::default());
        let server = ServerKey::new(
            PrivateKey::from_pkcs8(&server.to_pkcs8().expect("bytes")).expect("a key"),
        );
        let grants = Arc::new(grants.signing(server));
        let (user, comment) = ("alice".to_owned(), String::new());
        let binding = Binding { user, key: *alice.public_key(), comment };
        grants.bind(Accounts::new(&[binding], |_| Some(alice_ids())).0);
        grants.created(&made, bob.public_key());
        let rules = Rules { read_only: false, key_use: KeyUse::Only, ..Rules::default() };
        let clients = vec![(Client::Everybody, Arc::new(rules))];
        let export = Arc::new(Export::new(ExportId(1), "/export".into(), fs, clients));
        let plan = Plan::new(HandleKey::new([7; 16]), vec![export]);
        let exports = Arc::new(Exports::new(plan.granting(Some(Arc::clone(&grants)))));
        let program = GrantProgram::new(Arc::clone(&exports), grants);
        let programs: Vec<Arc<dyn Program<RpcPeer>>> = vec![Arc::new(program)];
        let dispatcher = Dispatcher::new(programs, Arc::clone(&exports));
        Self { dispatcher, exports, bob: peer(bob), credential: credential(&shared), xid: 0 }
    }

    /// Makes every call of an input. A call is a byte for the procedure, two bytes for a length,
    /// and so many bytes: the arguments, or if the highest bit of the procedure is set, a text from
    /// which the arguments are made.
    ///
    /// # Panics
    /// A call does not have exactly one reply, or Bob gets a right that was not granted to him.
    pub fn calls(&mut self, mut input: &[u8]) {
        while let [number, high, low, rest @ ..] = input {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
            let (text, behind) = rest.split_at(length);
            let procedure = u32::from(number & !MADE);
            if number & MADE == 0 {
                self.call(procedure, text);
            } else {
                let arguments = self.arguments(procedure, text);
                self.call(procedure, &arguments);
            }
            input = behind;
        }
        let plan = self.exports.current();
        let secret = Door::Path(b"/export/secret");
        let entered = View::enter(&plan, &self.bob, &CredentialRef::NOBODY, secret);
        assert!(entered.is_err(), "nobody has granted that");
    }

    fn call(&mut self, procedure: u32, arguments: &[u8]) {
        self.xid += 1;
        let record = call_record(self.xid, (PROGRAM, VERSION), procedure, arguments);
        let (mut replies, peer) = (Encoder::new(), SocketAddr::from(PEER).ip());
        let answered = self.dispatcher.answer(&record, peer, &self.bob, &mut replies);
        assert!(matches!(answered, Ok(Answered::Now)), "a call is not answered at once");
        assert_one_reply(&record, &replies);
    }

    /// Makes arguments that can be decoded, so that the server examines their content.
    fn arguments(&self, number: u32, text: &[u8]) -> Vec<u8> {
        let mut arguments = Encoder::new();
        match number {
            procedure::SUBMIT => arguments.opaque(&self.spliced(text)),
            procedure::REVOKE => {
                let (kind, text) = text.split_first().unwrap_or((&1, &[]));
                arguments.value(&u32::from(kind % 3));
                let own = self.credential.as_bytes();
                arguments.opaque(if text.is_empty() { own } else { text });
            }
            procedure::WHY => {
                let mut parts = text.splitn(3, |byte| *byte == 0);
                arguments.opaque(&path(parts.next().unwrap_or_default()));
                arguments.opaque(parts.next().unwrap_or_default());
                arguments.opaque(parts.next().unwrap_or_default());
            }
            procedure::ID | procedure::FETCH => arguments.opaque(&path(text)),
            _ => arguments.raw(text),
        }
        arguments.bytes().to_vec()
    }

    /// Replaces a part of the credential: two bytes of the input give its offset, one gives its
    /// length.
    fn spliced(&self, text: &[u8]) -> Vec<u8> {
        let mut credential = self.credential.clone().into_bytes();
        if let [high, low, gone, new @ ..] = text {
            let at = usize::from(u16::from_be_bytes([*high, *low])).min(credential.len());
            let end = (at + usize::from(*gone)).min(credential.len());
            credential.splice(at..end, new.iter().copied());
        }
        credential
    }
}

impl Default for GrantingServer {
    fn default() -> Self {
        Self::new()
    }
}

fn mkdir(fs: &Memory, name: &[u8]) -> Handle {
    let set = SetAttr { mode: Some(Mode::new(0o755)), ..SetAttr::default() };
    let name = Name::new(name).expect("a name");
    let root = Cred::new(Uid::new(0), Gid::new(0));
    fs.mkdir(&root, &fs.root(), name, &set).expect("a directory").value.handle
}

fn alice_ids() -> Cred<comity_vfs::Disk> {
    Cred::new(Uid::new(ALICE), Gid::new(ALICE))
}

/// A connection on which a key was proved.
fn peer(key: &PrivateKey) -> RpcPeer {
    let identity = PeerIdentity {
        key: PeerKey::new(&key.public_key().to_spki(), KeyId([0; 32])),
        names: Box::default(),
        authorities: Box::default(),
        user: None,
        expires: u64::MAX,
    };
    RpcPeer::new(SocketAddr::from(PEER)).over(Channel::Tls(Some(Arc::new(identity))))
}

/// The credential by which Alice grants Bob all rights to an object.
fn credential(object: &Handle) -> String {
    let [alice, bob, _] = &*KEYS;
    let grant = Grant {
        authorizer: *alice.public_key(),
        licensee: *bob.public_key(),
        export: None,
        object: ObjectId(*object).to_string(),
        rights: Rights::ALL,
        expires: None,
        is_final: false,
        comment: None,
    };
    grant.sign(alice).expect("a credential")
}

/// A path in the export.
fn path(below: &[u8]) -> Vec<u8> {
    [b"/export/", below].concat()
}
