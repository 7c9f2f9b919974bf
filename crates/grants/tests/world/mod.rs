//! A file system in memory, people with keys, and the grants of a server.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use comity_backend::{Memory, MemoryOptions};
use comity_grants::{
    Account, Accounts, Binding, Grants, Holder, KeyCaller, Medium, MediumError, Moment, ObjectId,
    Operation, Policy, Record, Recovered, Scene, ServerKey, Tree,
};
use comity_keynote::sign;
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};
use comity_vfs::{
    AsServer, Create, Cred, Disk, FileKey, Fs, Gid, Handle, Mode, Name, SetAttr, Status, Uid,
};

/// The export of all tests.
pub const EXPORT: &str = "/srv";

/// A person with a key.
pub struct Person(pub PrivateKey);

impl Person {
    pub fn new() -> Self {
        Self(PrivateKey::generate(Algorithm::Ed25519).unwrap())
    }

    pub fn key(&self) -> PublicKey {
        *self.0.public_key()
    }

    /// Signs a credential with these conditions.
    pub fn signs(&self, to: &Self, conditions: &str) -> String {
        let text = format!(
            "KeyNote-Version: 2\nAuthorizer: \"{}\"\nLicensees: \"{}\"\n\
             Conditions: {conditions};\n",
            self.key().to_keynote(),
            to.key().to_keynote(),
        );
        sign(&text, &self.0).unwrap()
    }

    /// Grants rights to an object and what is below it.
    pub fn grants(&self, to: &Self, object: &Handle, rights: &str) -> String {
        self.grants_if(to, object, rights, "true")
    }

    pub fn grants_if(&self, to: &Self, object: &Handle, rights: &str, test: &str) -> String {
        let id = ObjectId(*object);
        let about = format!("(object == \"{id}\" || within ~= \"{id}\")");
        self.signs(to, &format!("app_domain == \"Comity\" && {about} && {test} -> \"{rights}\""))
    }
}

/// A medium that keeps records in memory and may fail.
#[derive(Clone, Default)]
pub struct Kept(pub Arc<Mutex<(Vec<Record>, bool)>>);

impl Kept {
    pub fn fail(&self, fails: bool) {
        self.0.lock().unwrap().1 = fails;
    }

    pub fn records(&self) -> Vec<Record> {
        self.0.lock().unwrap().0.clone()
    }

    /// Everything that a server finds when it restarts.
    pub fn recovered(&self) -> Recovered {
        let mut found = Recovered::default();
        for record in self.records() {
            match record {
                Record::Held { holder, text, .. } => {
                    found.held.retain(|known| *known != (holder, text.clone()));
                    found.held.push((holder, text));
                }
                Record::Dropped { holder, digest } => found.held.retain(|(other, text)| {
                    let held = comity_keynote::SignedAssertion::parse(text).unwrap();
                    *other != holder || *held.digest() != digest
                }),
                Record::Revoked(revocation) => found.revoked.push(revocation),
                Record::Forgotten(what) => found.revoked.retain(|other| other.what != what),
                Record::Made(creation) => found.made.push(creation),
                Record::Unmade(object) => found.made.retain(|known| known.object != object),
                Record::Seen(moment) => found.seen = moment,
            }
        }
        found
    }
}

impl Medium for Kept {
    fn store(&self, _: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        let mut kept = self.0.lock().unwrap();
        if kept.1 {
            return Err("the disk is full".into());
        }
        kept.0.extend_from_slice(records);
        Ok(())
    }

    fn replace(&self, _: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        let mut kept = self.0.lock().unwrap();
        if kept.1 {
            return Err("the disk is full".into());
        }
        kept.0 = records.to_vec();
        Ok(())
    }
}

/// A server with files and grants.
pub struct World {
    pub fs: Arc<Memory>,
    pub grants: Arc<Grants>,
    pub kept: Kept,
    pub now: Arc<AtomicU64>,
    /// The policy of the export.
    pub policy: Option<Arc<Policy>>,
}

pub fn cred(uid: u32) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(uid))
}

/// A new signing key for a server.
fn server_key() -> ServerKey {
    ServerKey::new(PrivateKey::generate(Algorithm::Ed25519).unwrap())
}

/// Grants with the clock `now`, in milliseconds.
pub fn grants(now: &Arc<AtomicU64>, medium: Box<dyn Medium>, recovered: Recovered) -> Arc<Grants> {
    let clock = Arc::clone(now);
    let clock = Box::new(move || Moment(clock.load(Ordering::SeqCst)));
    Arc::new(Grants::new(clock, medium, recovered).signing(server_key()))
}

/// The time at which the tests begin.
pub const BEGUN: u64 = 1_800_000_000;

impl World {
    pub fn new() -> Self {
        let fs = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
        Self::after(Kept::default(), &fs, BEGUN)
    }

    /// A server that starts with what another server has stored.
    pub fn after(kept: Kept, fs: &Arc<Memory>, seconds: u64) -> Self {
        let fs = Arc::clone(fs);
        let now = Arc::new(AtomicU64::new(seconds * 1000));
        let grants = grants(&now, Box::new(kept.clone()), kept.recovered());
        Self { fs, grants, kept, now, policy: None }
    }

    /// Puts a policy of the export in force.
    pub fn trust(&mut self, text: &str) {
        let policy = Arc::new(Policy::parse(text.as_bytes()).unwrap());
        self.grants.trust(vec![Arc::clone(&policy)]);
        self.policy = Some(policy);
    }

    /// Binds the keys of people to users with these uids.
    pub fn bind(&self, people: &[(&Person, u32)]) {
        let bindings: Vec<_> = people
            .iter()
            .map(|(person, uid)| {
                let (user, key) = (format!("user{uid}"), person.key());
                Binding { user, key, comment: String::new() }
            })
            .collect();
        let ids = |user: &str| user.strip_prefix("user")?.parse().ok().map(cred);
        self.grants.bind(Accounts::new(&bindings, ids).0);
    }

    pub fn pass_seconds(&self, seconds: u64) {
        self.pass_milliseconds(seconds * 1000);
    }

    pub fn pass_milliseconds(&self, milliseconds: u64) {
        self.now.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub fn holder(&self, person: &Person) -> Arc<Holder> {
        Arc::new(Holder::new(&self.grants, person.key(), IpAddr::from([192, 0, 2, 1])))
    }

    /// A person on a host with these names, who acts as user 7 by the policy.
    pub fn guest(&self, person: &Person, names: &'static str) -> Arc<Holder> {
        let guest = Account { user: "guest".to_owned(), cred: cred(7) };
        let caller = KeyCaller::new(person.key(), IpAddr::from([192, 0, 2, 1]));
        let caller = caller.named(Arc::new(|| names.to_owned())).as_guest(Arc::new(guest));
        Arc::new(Holder::of(&self.grants, caller))
    }

    pub fn mkdir(&self, dir: &Handle, name: &str) -> Handle {
        let set = SetAttr { mode: Some(Mode::new(0o755)), ..SetAttr::default() };
        let name = Name::new(name.as_bytes()).unwrap();
        self.fs.mkdir(&cred(0), dir, name, &set).unwrap().value.handle
    }

    /// Creates a file, which the holder then looks up by its name.
    pub fn create(&self, dir: &Handle, name: &str) -> Handle {
        let how = Create::Guarded(SetAttr::default());
        let bytes = name.as_bytes();
        let made = self.fs.create(&cred(0), dir, Name::new(bytes).unwrap(), &how).unwrap();
        let handle = made.value.handle;
        self.grants.ancestry().met(&self.key(&handle), dir, bytes);
        handle
    }

    pub fn rename(&self, from: (&Handle, &str), to: (&Handle, &str)) {
        let name = |name: &'static str| Name::new(name.as_bytes()).unwrap();
        let (from, to) = ((from.0, from.1.to_owned().leak()), (to.0, to.1.to_owned().leak()));
        self.fs.rename(&cred(0), (from.0, name(from.1)), (to.0, name(to.1))).unwrap();
    }

    pub fn key(&self, handle: &Handle) -> FileKey {
        FileKey { volume: 1, export: 1, handle: *handle }
    }

    pub fn grantor(
        &self,
        holder: &Holder,
        object: &Handle,
        operation: Operation,
    ) -> Result<Option<Account>, Status> {
        self.through(EXPORT, |scene| holder.grantor(scene, object, operation).map(|it| it.cloned()))
    }

    /// Makes a request through an export of another path.
    pub fn through<T>(&self, path: &str, ask: impl FnOnce(&Scene<'_>) -> T) -> T {
        let key = |handle: &Handle| self.key(handle);
        let tree = Tree { fs: &*self.fs, key: &key };
        ask(&Scene { number: 1, path, tree, policy: self.policy.as_ref() })
    }

    /// The names of the operations that a person may do on an object.
    pub fn allowed(&self, person: &Person, object: &Handle) -> String {
        let holder = self.holder(person);
        let may =
            |operation: &&Operation| self.grantor(&holder, object, **operation).unwrap().is_some();
        let names: Vec<_> = Operation::ALL.iter().filter(may).map(|it| it.name()).collect();
        names.join(" ")
    }

    pub fn submit(&self, person: &Person, texts: &[&str]) {
        let submitted = self.grants.submit(person.key(), &texts.join("\n")).unwrap();
        assert!(submitted.iter().all(|one| one.outcome.is_held()), "{submitted:?}");
    }
}
