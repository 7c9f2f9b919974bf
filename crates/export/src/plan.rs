use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::{ArcSwap, Guard};
use comity_cloak::Cloak;
use comity_credential::Flavor;
use comity_idmap::Ids;
use comity_vfs::{
    AsServer, FileHold, FileKey, Fs, Handle, LocalUse, RangeLock, Result, Status, Time,
};

use crate::counters::{ClientCounters, ExportCounters};
use crate::export_spec::Settings;
use crate::host_cache::HostCache;
use crate::limits::EXPORTS_MAX;
use crate::load::identity;
use crate::mount_point::is_mount_point;
use crate::pseudo::now;
use crate::{Client, HandleKey, RuleSource, SealedHandle};

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
    /// Under which ids callers act and by which they see owners (`root_squash`, `anonuid`,
    /// `range_map_uid` and the like).
    pub ids: Ids,
    /// Which files are hidden from whom (`cloak_uid`, `cloak_gid`).
    pub cloak: Cloak,
    /// Clients are kept from serving one user's listing to another out of their caches: every reply
    /// shows a directory as changed.
    pub no_client_cache: bool,
    /// How callers may identify themselves, preferred first (`sec`).
    pub flavors: Vec<Flavor>,
    /// Whether there is READDIRPLUS (not with `nordirplus`).
    pub readdirplus: bool,
    /// NFSv4 takes no name that is not UTF-8 (`utf8_names`).
    pub utf8_names: bool,
}

impl Default for Rules {
    /// exports(5) without options, which is the careful choice throughout.
    fn default() -> Self {
        Self {
            read_only: true,
            sync: true,
            secure: true,
            ids: Ids::default(),
            cloak: Cloak::new(&[]).0,
            no_client_cache: false,
            flavors: vec![Flavor::SYS],
            readdirplus: true,
            utf8_names: false,
        }
    }
}

impl Rules {
    /// Whether a call may come from this port.
    pub(crate) const fn take_port(&self, port: u16) -> bool {
        !self.secure || port < 1024
    }
}

/// A directory that is offered.
pub struct Export {
    id: ExportId,
    path: PathBuf,
    fs: Arc<dyn Fs>,
    fsid: u64,
    /// The volume of its top directory.
    volume: u64,
    clients: Vec<(Client, Arc<Rules>)>,
    /// Where each of them is written, if they are written anywhere.
    origins: Vec<RuleSource>,
    settings: Settings,
    names: Option<Arc<HostCache>>,
    identity: Option<(u64, u64)>,
    /// Counts replies that must look like changes, from the clock on, so that a restart repeats
    /// none.
    moments: AtomicU64,
    counters: ExportCounters,
}

/// The entry of an export that decides about a peer.
pub(crate) struct Entry<'a> {
    pub(crate) client: &'a Client,
    pub(crate) rules: &'a Arc<Rules>,
    pub(crate) origin: Option<&'a RuleSource>,
    pub(crate) counters: &'a Arc<ClientCounters>,
}

impl Export {
    /// Offers what is at `path`, served by `fs`, to `clients`: the most specific that matches
    /// decides, among equals the first.
    #[must_use]
    pub fn new(
        id: ExportId,
        path: PathBuf,
        fs: Arc<dyn Fs>,
        mut clients: Vec<(Client, Arc<Rules>)>,
    ) -> Self {
        clients.sort_by_key(|(client, _)| client.rank());
        let (fsid, volume) = numbers(&*fs);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let moments = AtomicU64::new(now.map_or(0, |since| since.as_nanos() as u64));
        let (settings, identity) = (Settings::default(), identity(&path));
        let (names, origins) = (None, Vec::new());
        let counters = ExportCounters::new(clients.iter().map(|(client, _)| (client, None)), None);
        Self {
            id,
            path,
            fs,
            fsid,
            volume,
            clients,
            origins,
            settings,
            names,
            identity,
            moments,
            counters,
        }
    }

    /// The same export with what its options say about it, and with somebody to ask for the names
    /// of peers; without, entries by name match nobody. `origins` go with the clients. What `old`
    /// has counted goes on.
    pub(crate) fn configured(
        self,
        settings: Settings,
        names: Arc<HostCache>,
        origins: Vec<RuleSource>,
        old: Option<&Self>,
    ) -> Self {
        let clients = self.clients.iter().map(|(client, _)| client).zip(origins.iter().map(Some));
        let counters = ExportCounters::new(clients, old.map(|old| &old.counters));
        Self { settings, names: Some(names), origins, counters, ..self }
    }

    /// What was counted of its domains and clients.
    pub fn counters(&self) -> impl Iterator<Item = &Arc<ClientCounters>> {
        self.counters.all()
    }

    /// What is counted of those whom no entry means.
    pub(crate) fn strangers(&self) -> &ClientCounters {
        self.counters.strangers()
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

    /// Nanoseconds that no reply has shown for a long time: a directory that bears them looks
    /// changed.
    pub(crate) fn moment_nanoseconds(&self) -> u32 {
        (self.moments.fetch_add(1, Ordering::Relaxed) % 1_000_000_000) as u32
    }

    /// What its options say about it, whoever comes.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// To whom it is offered under which rules, in the order in which they are asked.
    #[must_use]
    pub fn clients(&self) -> &[(Client, Arc<Rules>)] {
        &self.clients
    }

    /// Which directory was at its path when it was made.
    pub(crate) const fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    pub(crate) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// What its top directory's file system is called by the backend.
    pub(crate) const fn fsid(&self) -> u64 {
        self.fsid
    }

    /// By what a file of this export is remembered.
    pub(crate) fn key(&self, handle: &Handle) -> FileKey {
        let one_volume = !self.settings.crosses_mounts;
        let volume = if one_volume { self.volume } else { self.fs.volume(handle) };
        FileKey { volume, export: self.id.0, handle: *handle }
    }

    /// The rules for a client at this address, if it may come in at all.
    #[must_use]
    pub fn rules(&self, peer: IpAddr) -> Option<&Arc<Rules>> {
        self.judge(peer).ok().map(|(_, rules)| rules)
    }

    /// The entry that decides about a peer. An address of IPv4 in the clothes of IPv6 is itself.
    ///
    /// # Errors
    /// [`Status::Acces`] if nobody meant it; [`Status::Delay`] while that cannot be told.
    pub(crate) fn judge(&self, peer: IpAddr) -> Result<(&Client, &Arc<Rules>)> {
        self.decide(peer).map(|Entry { client, rules, .. }| (client, rules))
    }

    /// The same, with where that entry is written and what is counted of it.
    pub(crate) fn decide(&self, peer: IpAddr) -> Result<Entry<'_>> {
        let peer = peer.to_canonical();
        let names = || match &self.names {
            Some(names) => names.of(peer),
            None => Ok(Arc::default()),
        };
        let entries = self.clients.iter().zip(self.counters.by_client()).enumerate();
        for (at, ((client, rules), counters)) in entries {
            if client.matches(peer, &names)? {
                return Ok(Entry { client, rules, origin: self.origins.get(at), counters });
            }
        }
        Err(Status::Acces)
    }

    fn names(&self) -> Option<&HostCache> {
        self.names.as_deref()
    }

    /// Whether what must be mounted is mounted.
    pub(crate) fn is_mounted(&self) -> bool {
        self.settings.is_mounted(&self.path)
    }
}

/// What the top directory's file system and its volume are called by the backend.
fn numbers(fs: &dyn Fs) -> (u64, u64) {
    let root = fs.root();
    (fs.getattr(&root).map_or(0, |attr| attr.fsid), fs.volume(&root))
}

impl Settings {
    /// Whether what must be mounted for an export at `path` is mounted.
    pub(crate) fn is_mounted(&self, path: &Path) -> bool {
        let Some(point) = &self.mount_point else { return true };
        let point = if point.as_os_str().is_empty() { path } else { point };
        // What cannot be told is not so.
        AsServer::here().is_ok_and(|server| is_mount_point(&server, point))
    }
}

/// Everything that is offered at one time. Immutable: a reload makes another.
pub struct Plan {
    generation: u64,
    moment: Time,
    key: HandleKey,
    exports: Vec<Arc<Export>>,
    /// The volumes of exports that earlier plans had: clients still give back what they hold there.
    gone: Vec<(ExportId, u64)>,
}

impl Plan {
    /// A plan of these exports.
    #[must_use]
    pub fn new(key: HandleKey, exports: Vec<Arc<Export>>) -> Self {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        Self { generation, moment: now(), key, exports, gone: Vec::new() }
    }

    /// The same plan after `old`.
    pub(crate) fn after(mut self, old: &Self) -> Self {
        let known = old.exports.iter().map(|export| (export.id, export.volume));
        let known = known.chain(old.gone.iter().copied());
        let gone = known.filter(|(id, _)| self.export(*id).is_none());
        self.gone = gone.take(EXPORTS_MAX).collect();
        self
    }

    /// Its exports.
    #[must_use]
    pub fn exports(&self) -> &[Arc<Export>] {
        &self.exports
    }

    /// When it was made: what is said of the directories above the exports to have changed.
    pub(crate) const fn moment(&self) -> Time {
        self.moment
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// An object's handle as clients know it, for calls that are made to them.
    #[must_use]
    pub fn seal(&self, export: ExportId, handle: &Handle) -> SealedHandle {
        self.key.seal(export, handle)
    }

    /// What a handle off the wire is the handle of, whoever shows it: to find what is remembered of
    /// it, never to let somebody in.
    ///
    /// # Errors
    /// [`Status::BadHandle`].
    pub fn unseal(&self, sealed: &[u8]) -> Result<(ExportId, Handle)> {
        self.key.open(sealed)
    }

    /// A handle for a call to a client that names the file by the export of this key.
    #[must_use]
    pub fn seal_key(&self, file: &FileKey) -> SealedHandle {
        self.seal(ExportId(file.export), &file.handle)
    }

    /// By what the file of a handle off the wire is remembered, whoever shows it: never to let
    /// somebody in.
    ///
    /// # Errors
    /// [`Status::BadHandle`]; [`Status::Stale`] if there was no such export for long.
    pub fn unseal_key(&self, sealed: &[u8]) -> Result<FileKey> {
        let (id, handle) = self.unseal(sealed)?;
        if let Some(export) = self.export(id) {
            return Ok(export.key(&handle));
        }
        let (_, volume) = self.gone.iter().find(|(gone, _)| *gone == id).ok_or(Status::Stale)?;
        Ok(FileKey { volume: *volume, export: id.0, handle })
    }

    /// What people know an object by: the path of its export, and its number there, as `find -inum`
    /// takes it, if it still exists. For those who look after the server, not for clients.
    #[must_use]
    pub fn locate(&self, file: &FileKey) -> Option<(&Path, Option<u64>)> {
        let export = self.export_of(file)?;
        let fileid = export.fs.getattr(&file.handle).ok().map(|attr| attr.fileid);
        Some((&export.path, fileid))
    }

    /// See [`Fs::hold_range`]: for what all clients hold together, so at no caller's door.
    ///
    /// # Errors
    /// [`Status::NotSupp`] where there are no other programs, or the export is gone; [`Status`].
    pub fn hold_range(&self, file: &FileKey, bytes: (u64, u64), lock: RangeLock) -> Result<bool> {
        let export = self.export_of(file).ok_or(Status::NotSupp)?;
        export.fs.hold_range(&file.handle, bytes, lock)
    }

    /// See [`Fs::is_range_free`].
    ///
    /// # Errors
    /// The same.
    pub fn is_range_free(
        &self,
        file: &FileKey,
        bytes: (u64, u64),
        lock: RangeLock,
    ) -> Result<bool> {
        let export = self.export_of(file).ok_or(Status::NotSupp)?;
        export.fs.is_range_free(&file.handle, bytes, lock)
    }

    /// See [`Fs::hold_file`]: for what is delegated to clients, so at no caller's door. A file is
    /// held by the export of its key, through which the client's data go.
    ///
    /// # Errors
    /// [`Status::NotSupp`] where there are no other programs, or the export is gone; [`Status`].
    pub fn hold_file(&self, file: &FileKey, hold: FileHold) -> Result<bool> {
        let export = self.export(ExportId(file.export)).ok_or(Status::NotSupp)?;
        export.fs.hold_file(&file.handle, hold)
    }

    /// Lets go of files that were removed, once a second: see [`Fs::release_removed`].
    pub fn release_removed(&self) {
        self.exports.iter().for_each(|export| export.fs.release_removed());
    }

    /// Files that are held and what programs do with them; each is told once
    /// ([`Fs::poll_wanted`]).
    pub fn wanted(&self) -> impl Iterator<Item = (FileKey, LocalUse)> {
        self.exports.iter().flat_map(|export| {
            let wanted = std::iter::from_fn(|| export.fs.poll_wanted());
            wanted.map(|(handle, local)| (export.key(&handle), local))
        })
    }

    /// The names of peers, if there are exports: all of them ask the same.
    pub(crate) fn names(&self) -> Option<&HostCache> {
        self.exports.iter().find_map(|export| export.names())
    }

    /// Whether some entry of a client list matches by the name of the peer.
    pub(crate) fn asks_for_names(&self) -> bool {
        let clients = self.exports.iter().flat_map(|export| &export.clients);
        clients.into_iter().any(|(client, _)| client.needs_names())
    }

    /// Looks up the name of a peer, if an entry may need it, and waits for the answer: before a
    /// tool asks what the peer may do. A server never waits for a name.
    pub fn learn_name(&self, peer: IpAddr) {
        if self.asks_for_names()
            && let Some(names) = self.exports.iter().find_map(|export| export.names())
        {
            names.learn(peer.to_canonical());
        }
    }

    pub(crate) const fn key(&self) -> &HandleKey {
        &self.key
    }

    /// The export of a key; if that is gone, another one of its volume.
    fn export_of(&self, file: &FileKey) -> Option<&Arc<Export>> {
        let shows = |export: &&Arc<Export>| export.volume == file.volume;
        self.export(ExportId(file.export)).or_else(|| self.exports.iter().find(shows))
    }

    pub(crate) fn export(&self, id: ExportId) -> Option<&Arc<Export>> {
        self.exports.iter().find(|export| export.id == id)
    }
}

/// The plan in force. Each request is judged by one plan, whole.
pub struct Exports {
    plan: ArcSwap<Plan>,
    /// The plan's generation, where the gate reads it without taking hold of the plan.
    generation: AtomicU64,
    refused: AtomicU64,
}

impl Exports {
    /// Puts a first plan in force.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let generation = AtomicU64::new(plan.generation);
        Self { plan: ArcSwap::from_pointee(plan), generation, refused: AtomicU64::new(0) }
    }

    /// The plan in force now.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<Plan>> {
        self.plan.load()
    }

    /// Puts another plan in force, for all requests that begin from here on.
    pub fn replace(&self, plan: Plan) {
        let generation = plan.generation;
        self.plan.store(Arc::new(plan));
        self.generation.store(generation, Ordering::Release);
    }

    /// Calls that the gate refused, because no export is offered to their peer.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}
