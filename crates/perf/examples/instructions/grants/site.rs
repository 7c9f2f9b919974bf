//! A server that has just been started on a folder, and keys that call it.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use comity_backend::{Passthrough, PassthroughOptions};
use comity_bench::fixture_tree::CALLER;
use comity_bench::suite::Files;
use comity_bench::targets::files_over;
use comity_credential::{Channel, KeyId, PeerIdentity, PeerKey};
use comity_export::{Client, Export, ExportId, Exports, HandleKey, KeyUse, Plan, RpcPeer, Rules};
use comity_grants::{
    Accounts, Binding, Grants, Holder, Moment, ObjectId, Operation, Recovered, RightsClock, Scene,
    Tree, Unstored,
};
use comity_keynote::{Grant, Rights};
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};
use comity_nfs3::{Mount, Nfs3};
use comity_remote::rpc::Caller;
use comity_vfs::{Cred, FileKey, Fs, Gid, Handle, Name, Uid};
use rustix::time::{ClockId, clock_gettime};

use super::line::CallStream;

/// The path of the export.
const PATH: &str = "/srv";
/// The number of the export.
const EXPORT: ExportId = ExportId(1);
/// The address of all callers.
const PEER: ([u8; 4], u16) = ([127, 0, 0, 1], 777);

/// A new server of a folder: it has decided nothing yet, and has opened no file.
pub(super) struct KeyedExport {
    exports: Arc<Exports>,
    volume: u64,
    fs: Arc<dyn Fs>,
    grants: Arc<Grants>,
    account: Arc<PrivateKey>,
    /// Number of credentials made so far. Each credential contains its number, so that no two are
    /// equal.
    made: Cell<u64>,
}

impl KeyedExport {
    /// Starts a server that keeps decisions about `decisions` objects.
    pub(super) fn new(folder: &Path, decisions: usize) -> Result<Self> {
        Self::holding(folder, decisions, Arc::new(new_key()?), Vec::new())
    }

    /// Starts a server like [`Self::new`] for an account, with credentials that keys submitted to
    /// an earlier server.
    pub(super) fn holding(
        folder: &Path,
        decisions: usize,
        account: Arc<PrivateKey>,
        held: Vec<(PublicKey, String)>,
    ) -> Result<Self> {
        let fs: Arc<dyn Fs> = Arc::new(Passthrough::open(folder, PassthroughOptions::default())?);
        let recovered = Recovered { held, ..Recovered::default() };
        let grants = Grants::new(clock(), Box::new(Unstored), recovered);
        let grants = Arc::new(grants.keeping(decisions));
        let (user, key) = ("owner".to_owned(), *account.public_key());
        let binding = Binding { user, key, comment: String::new() };
        let cred = Cred::new(Uid::new(CALLER), Gid::new(CALLER));
        grants.bind(Accounts::new(&[binding], |_| Some(cred.clone())).0);
        let rules =
            Rules { read_only: false, sync: false, key_use: KeyUse::Only, ..Rules::default() };
        let clients = vec![(Client::Everybody, Arc::new(rules))];
        let export = Arc::new(Export::new(EXPORT, PATH.into(), Arc::clone(&fs), clients));
        let plan = Plan::new(HandleKey::new([9; 16]), vec![export]);
        let exports = Arc::new(Exports::new(plan.granting(Some(Arc::clone(&grants)))));
        let volume = fs.volume(&fs.root());
        Ok(Self { exports, volume, fs, grants, account, made: Cell::new(0) })
    }

    /// The key of the account, with which it signs.
    pub(super) fn signer(&self) -> Arc<PrivateKey> {
        Arc::clone(&self.account)
    }

    pub(super) fn account(&self) -> PublicKey {
        *self.account.public_key()
    }

    /// The handle of a path of the folder.
    pub(super) fn find(&self, path: &str) -> Result<Handle> {
        let root = Cred::new(Uid::new(0), Gid::new(0));
        path.split('/').filter(|name| !name.is_empty()).try_fold(self.fs.root(), |dir, name| {
            let part = Name::new(name.as_bytes()).ok().context("no name")?;
            let found = self.fs.lookup(&root, &dir, part);
            Ok(found.ok().with_context(|| format!("no {name}"))?.node.handle)
        })
    }

    /// A key, and a chain of credentials that lead to it from the account.
    pub(super) fn chain(&self, object: &Handle, links: usize) -> Result<(PublicKey, String)> {
        let taker = new_key()?;
        let text = self.chain_to(object, links, taker.public_key())?;
        Ok((*taker.public_key(), text))
    }

    /// A chain of credentials that lead to a key from the account.
    pub(super) fn chain_to(
        &self,
        object: &Handle,
        links: usize,
        taker: &PublicKey,
    ) -> Result<String> {
        let (mut giver, mut text) = (Arc::clone(&self.account), String::new());
        for link in 1..=links {
            let next = Arc::new(new_key()?);
            let licensee = if link == links { *taker } else { *next.public_key() };
            let grant = Grant {
                authorizer: *giver.public_key(),
                licensee,
                export: None,
                object: ObjectId(*object).to_string(),
                rights: "rwxcda".parse::<Rights>()?,
                expires: None,
                is_final: false,
                comment: Some(self.made.replace(self.made.get() + 1).to_string()),
            };
            text.push_str(&grant.sign(&*giver)?);
            text.push('\n');
            giver = next;
        }
        Ok(text)
    }

    /// Submits credentials, each of which must be held.
    pub(super) fn submit(&self, key: PublicKey, text: &str) -> Result<()> {
        let submitted = self.grants.submit(key, text)?;
        ensure!(submitted.iter().all(|one| one.outcome.is_held()), "a credential is not held");
        Ok(())
    }

    /// The files as a key has them over NFS version 3, on a new connection.
    pub(super) fn files(&self, key: &PublicKey) -> Result<Box<dyn Files>> {
        let peer = SocketAddr::from(PEER);
        let identity = PeerIdentity {
            key: PeerKey::new(&key.to_spki(), KeyId([0; 32])),
            names: Box::default(),
            authorities: Box::default(),
            user: None,
            expires: u64::MAX,
        };
        let visitor = RpcPeer::new(peer).over(Channel::Tls(Some(Arc::new(identity))));
        let mount = Arc::new(Mount::new(Arc::clone(&self.exports)));
        let nfs = Arc::new(Nfs3::new(Arc::clone(&self.exports), [1; 8]));
        let line = CallStream::new(vec![nfs, mount], Arc::clone(&self.exports), (peer, visitor));
        let mut caller = Caller::over(line, (CALLER, CALLER));
        let root = caller.mount(Path::new(PATH))?;
        Ok(files_over(caller, &root))
    }

    /// A key about which nothing is decided.
    pub(super) fn holder(&self, key: PublicKey) -> Holder {
        Holder::new(&self.grants, key, SocketAddr::from(PEER).ip())
    }

    /// Checks that a key may read an object.
    pub(super) fn pass(&self, holder: &Holder, object: &Handle) -> Result<()> {
        let (volume, export) = (self.volume, EXPORT.0);
        let key = |handle: &Handle| FileKey { volume, export, handle: *handle };
        let tree = Tree { fs: &*self.fs, key: &key };
        let scene = Scene { number: EXPORT.0, path: PATH, tree, policy: None };
        let passed = holder.pass(&scene, object, Operation::Read);
        ensure!(passed.is_ok_and(|cred| cred.is_some()), "a key is not let in");
        Ok(())
    }
}

fn new_key() -> Result<PrivateKey> {
    PrivateKey::generate(Algorithm::Ed25519).context("make a key")
}

/// The clock of a server.
fn clock() -> comity_grants::TellMoment {
    let milliseconds = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
    };
    let begun = milliseconds(ClockId::MonotonicCoarse);
    let clock = RightsClock::after(Moment::default(), 0);
    Box::new(move || {
        let system = milliseconds(ClockId::RealtimeCoarse);
        clock.now(milliseconds(ClockId::MonotonicCoarse) - begun, system)
    })
}
