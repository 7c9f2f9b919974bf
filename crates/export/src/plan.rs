use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use comity_credential::Flavor;
use comity_vfs::{Cred, Disk, Fs, Gid, Uid};

use crate::{HandleKey, Squash};

/// The number of an export: in every handle, so the same over restarts and reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExportId(pub u32);

/// Under which rules a client meets an export; everything exports(5) says behind a client's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Nothing may be changed (`ro`).
    pub read_only: bool,
    /// Changes of names and attributes are on stable storage before they are answered (`sync`).
    /// COMMIT and stable writes always are.
    pub sync: bool,
    /// Calls must come from a port below 1024 (`secure`).
    pub secure: bool,
    /// Whose ids are replaced.
    pub squash: Squash,
    /// As whom the squashed act (`anonuid`, `anongid`).
    pub anonymous: Cred<Disk>,
    /// How callers may identify themselves, preferred first (`sec`).
    pub flavors: Vec<Flavor>,
}

impl Default for Rules {
    /// exports(5) without options, which is the careful choice throughout.
    fn default() -> Self {
        Self {
            read_only: true,
            sync: true,
            secure: true,
            squash: Squash::Root,
            anonymous: Cred::new(Uid::new(65_534), Gid::new(65_534)),
            flavors: vec![Flavor::SYS],
        }
    }
}

/// To whom an export is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// One address.
    Address(IpAddr),
    /// Everybody (`*`).
    Everybody,
}

impl Client {
    /// Whether it is meant.
    #[must_use]
    pub fn matches(&self, peer: IpAddr) -> bool {
        match self {
            Self::Address(address) => *address == peer,
            Self::Everybody => true,
        }
    }
}

/// A directory that is offered.
pub struct Export {
    id: ExportId,
    path: PathBuf,
    fs: Arc<dyn Fs>,
    clients: Vec<(Client, Arc<Rules>)>,
}

impl Export {
    /// Offers what is at `path`, served by `fs`, to `clients`: the first that matches decides.
    #[must_use]
    pub fn new(
        id: ExportId,
        path: PathBuf,
        fs: Arc<dyn Fs>,
        clients: Vec<(Client, Arc<Rules>)>,
    ) -> Self {
        Self { id, path, fs, clients }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> ExportId {
        self.id
    }

    /// Where it is, and under which name it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// The rules for a client at this address, if it may come in at all.
    #[must_use]
    pub fn rules(&self, peer: IpAddr) -> Option<&Arc<Rules>> {
        self.clients.iter().find(|(client, _)| client.matches(peer)).map(|(_, rules)| rules)
    }
}

/// Everything that is offered at one time. Immutable: a reload makes another.
pub struct Plan {
    generation: u64,
    key: HandleKey,
    exports: Vec<Arc<Export>>,
}

impl Plan {
    /// A plan of these exports.
    #[must_use]
    pub fn new(key: HandleKey, exports: Vec<Arc<Export>>) -> Self {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        Self { generation, key, exports }
    }

    /// Its exports.
    #[must_use]
    pub fn exports(&self) -> &[Arc<Export>] {
        &self.exports
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) const fn key(&self) -> &HandleKey {
        &self.key
    }

    pub(crate) fn export(&self, id: ExportId) -> Option<&Arc<Export>> {
        self.exports.iter().find(|export| export.id == id)
    }
}

/// The plan in force. Each request is judged by one plan, whole.
pub struct Exports(ArcSwap<Plan>);

impl Exports {
    /// Puts a first plan in force.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self(ArcSwap::from_pointee(plan))
    }

    /// The plan in force now.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<Plan>> {
        self.0.load()
    }

    /// Puts another plan in force, for all requests that begin from here on.
    pub fn replace(&self, plan: Plan) {
        self.0.store(Arc::new(plan));
    }
}
