//! An export whose callers are known by their keys. Alice's key is bound to an account, Bob's is
//! not: he acts by the rights that she grants to his key.

use std::ops::ControlFlow;
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_credential::{Channel, KeyId, PeerIdentity, PeerKey};
use comity_export::{Client, Export, ExportId, Exports, HandleKey, KeyUse, Plan, Rules};
use comity_grants::{Accounts, Binding, Grants, Moment, ObjectId, Recovered, Unstored};
use comity_keynote::sign;
use comity_keys::{Algorithm, PrivateKey, Signer};
use comity_vfs::{
    Attr, Create, Cred, Disk, Fs, Gid, Handle, Listed, Listing, Mode, Name, SetAttr, Time, Uid,
    XattrMode,
};

/// A moment at which all credentials hold.
const NOW: Moment = Moment(1_800_000_000_000);

/// The objects that a credential is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// An object and what is below it.
    Tree,
    /// An object alone.
    Object,
}

/// The grants of a server, and the keys of Alice and Bob.
pub(crate) struct Granted {
    pub(crate) grants: Arc<Grants>,
    alice: PrivateKey,
    bob: PrivateKey,
}

impl Granted {
    /// Alice acts under these ids and has granted nothing yet.
    pub(crate) fn by(alice: Cred<Disk>) -> Self {
        let clock = Box::new(|| NOW);
        let grants = Arc::new(Grants::new(clock, Box::new(Unstored), Recovered::default()));
        let key = || PrivateKey::generate(Algorithm::Ed25519).unwrap();
        let (user, comment) = ("alice".to_owned(), String::new());
        let site = Self { grants, alice: key(), bob: key() };
        let binding = Binding { user, key: *site.alice.public_key(), comment };
        site.grants.bind(Accounts::new(&[binding], |_| Some(alice.clone())).0);
        site
    }

    /// Alice grants Bob rights to an object.
    pub(crate) fn grant(&self, object: &Handle, extent: Extent, rights: &str) {
        let id = ObjectId(*object);
        let condition = match extent {
            Extent::Tree => format!("object == \"{id}\" || within ~= \"{id}\""),
            Extent::Object => format!("object == \"{id}\""),
        };
        let text = format!(
            "Authorizer: \"{}\"\nLicensees: \"{}\"\nConditions: ({condition}) -> \"{rights}\";\n",
            self.alice.public_key().to_keynote(),
            self.bob.public_key().to_keynote(),
        );
        let text = sign(&text, &self.alice).unwrap();
        let submitted = self.grants.submit(*self.bob.public_key(), &text).unwrap();
        assert!(submitted[0].outcome.is_held());
    }

    /// Lets the server learn that an object of an export has a name in a directory.
    pub(crate) fn tell(
        &self,
        plan: &Plan,
        export: u32,
        (dir, name): (&Handle, &[u8]),
        it: &Handle,
    ) {
        let key = plan.unseal_key(plan.seal(ExportId(export), it).bytes()).unwrap();
        self.grants.ancestry().met(&key, dir, name);
    }

    /// A connection on which Bob has proved his key.
    pub(crate) fn channel(&self) -> Channel {
        Channel::Tls(Some(Arc::new(PeerIdentity {
            key: PeerKey::new(&self.bob.public_key().to_spki(), KeyId([0; 32])),
            names: Box::default(),
            authorities: Box::default(),
            user: None,
            expires: u64::MAX,
        })))
    }
}

/// The rights that an operation needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Needs {
    /// No right: the operation names no object, or one that every key may look at.
    Nothing,
    /// Any one right.
    Any,
    /// More than any right gives: NLM cannot tell a host that a lock has ended with its right.
    #[allow(dead_code, reason = "only NLM has such procedures")]
    Account,
    /// All of these rights.
    All(&'static str),
}

/// The answer that an operation must get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The operation is done.
    Done,
    /// The caller can see the object, but may not do the operation.
    Refused,
    /// The caller gets the answer of an object that does not exist.
    Gone,
}

/// All rights, by their letters.
pub(crate) const RIGHTS: &str = "rwxcda";

impl Needs {
    /// The answer to a key with these rights to the objects of the operation.
    pub(crate) fn verdict(self, rights: &str) -> Verdict {
        let holds = |right| rights.contains(right);
        let suffices = match self {
            Self::Nothing => return Verdict::Done,
            _ if rights.is_empty() => return Verdict::Gone,
            Self::Any => true,
            Self::Account => false,
            Self::All(needed) => needed.chars().all(holds),
        };
        if suffices { Verdict::Done } else { Verdict::Refused }
    }

    /// Sets of rights to try: none, each right alone, and all rights but one of those needed.
    pub(crate) fn trials(self) -> Vec<String> {
        let mut trials = vec![String::new(), RIGHTS.to_owned()];
        trials.extend(RIGHTS.chars().map(String::from));
        if let Self::All(needed) = self {
            trials.push(needed.to_owned());
            trials.extend(needed.chars().map(|right| RIGHTS.replace(right, "")));
        }
        trials
    }
}

/// The ids of Alice.
const ALICE: u32 = 1000;
/// The number of the export.
pub(crate) const EXPORT: u32 = 0x5a17;

/// An export `/srv` in which Alice has a directory `dir` with a file; Bob has rights to that
/// directory.
pub(crate) struct Furnished {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) channel: Channel,
    pub(crate) dir: Handle,
    pub(crate) file: Handle,
    #[allow(dead_code, reason = "NFSv3 has no operation on two files")]
    pub(crate) other: Handle,
    pub(crate) link: Handle,
    pub(crate) sub: Handle,
}

impl Furnished {
    /// Gives Bob these rights to the directory and to the objects below it, and all rights to
    /// another one.
    pub(crate) fn granting(rights: &str) -> Self {
        let root_mode = Mode::new(0o777);
        let options = MemoryOptions { root_mode, ..MemoryOptions::default() };
        let fs: Arc<dyn Fs> = Arc::new(Memory::new(options).unwrap());
        let (root, granted) = (fs.root(), Granted::by(alice()));
        let rules = Rules { read_only: false, key_use: KeyUse::Only, ..Rules::default() };
        let clients = vec![(Client::Everybody, Arc::new(rules))];
        let export = Export::new(ExportId(EXPORT), "/srv".into(), Arc::clone(&fs), clients);
        let plan = Plan::new(HandleKey::new([7; 16]), vec![Arc::new(export)]);
        let plan = plan.granting(Some(Arc::clone(&granted.grants)));
        let mkdir = |dir: &Handle, called| {
            fs.mkdir(&alice(), dir, name(called), &set(0o755)).unwrap().value.handle
        };
        let create = |dir: &Handle, called: &[u8]| {
            let how = Create::Guarded(set(0o644));
            let file = fs.create(&alice(), dir, name(called), &how).unwrap().value.handle;
            fs.write(&alice(), &file, 0, b"some words of a file").unwrap();
            granted.tell(&plan, EXPORT, (dir, called), &file);
            file
        };
        let (dir, elsewhere) = (mkdir(&root, b"dir"), mkdir(&root, b"elsewhere"));
        let (file, other) = (create(&dir, b"file"), create(&dir, b"other"));
        let tag = Some(&b"red"[..]);
        fs.setxattr(&alice(), &file, name(b"tag"), tag, XattrMode::Either).unwrap();
        let target = b"file";
        let link = fs.symlink(&alice(), &dir, name(b"link"), target, &set(0o777)).unwrap();
        let link = link.value.handle;
        granted.tell(&plan, EXPORT, (&dir, b"link"), &link);
        let sub = mkdir(&dir, b"sub");
        granted.grant(&elsewhere, Extent::Tree, RIGHTS);
        if !rights.is_empty() {
            granted.grant(&dir, Extent::Tree, rights);
        }
        let exports = Arc::new(Exports::new(plan));
        Self { channel: granted.channel(), fs, exports, dir, file, other, link, sub }
    }

    /// The names below the directory and the attributes of their objects, without access times.
    pub(crate) fn snapshot(&self) -> Vec<(Vec<u8>, Attr<Disk>)> {
        let mut found = Vec::new();
        let mut visit = |listing: &Listing<'_, Disk>| {
            found.push((listing.name.bytes().to_vec(), listing.node.unwrap().attr));
            ControlFlow::Continue(())
        };
        let dir = self.fs.readdir(&alice(), &self.dir, 0, Listed::Nodes, &mut visit).unwrap();
        found.push((b"dir".to_vec(), dir));
        found.iter_mut().for_each(|(_, attr)| attr.atime = Time::default());
        found
    }
}

/// The ids of Alice.
pub(crate) fn alice() -> Cred<Disk> {
    Cred::new(Uid::new(ALICE), Gid::new(ALICE))
}

fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).unwrap()
}

fn set(mode: u32) -> SetAttr<Disk> {
    SetAttr { mode: Some(Mode::new(mode)), ..SetAttr::default() }
}

/// A handle as clients see it.
#[allow(dead_code, reason = "the tests of NFSv4 have one of their own")]
pub(crate) fn sealed(handle: &Handle) -> Vec<u8> {
    HandleKey::new([7; 16]).seal(ExportId(EXPORT), handle).bytes().to_vec()
}
