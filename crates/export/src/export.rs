use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use comity_grants::Policy;
use comity_vfs::{AsServer, FileKey, Fs, Handle, Placement, Result, Status};

use crate::counters::{ClientCounters, ExportCounters};
use crate::export_spec::Settings;
use crate::host_cache::HostCache;
use crate::{Candidate, Client, ExportId, KeyUse, Referral, RuleSource, Rules};

/// A directory that is offered to clients.
pub struct Export {
    id: ExportId,
    path: PathBuf,
    /// The path as credentials name it.
    path_text: Box<str>,
    fs: Arc<dyn Fs>,
    fsid: u64,
    /// The volume of its top directory.
    volume: u64,
    clients: Vec<(Client, Arc<Rules>)>,
    /// The sources of the clients' rules, if they are written anywhere.
    origins: Vec<RuleSource>,
    settings: Settings,
    names: Option<Arc<HostCache>>,
    policy: Option<Arc<Policy>>,
    identity: Option<(u64, u64)>,
    /// Counts replies in which directories must look changed. It starts at the time of the clock,
    /// so that a restart repeats no value.
    moments: AtomicU64,
    counters: ExportCounters,
}

/// The entry of an export that applies to a peer.
pub(crate) struct Entry<'a> {
    pub(crate) client: &'a Client,
    pub(crate) rules: &'a Arc<Rules>,
    pub(crate) origin: Option<&'a RuleSource>,
    pub(crate) counters: &'a Arc<ClientCounters>,
}

impl Entry<'_> {
    /// Returns whether a call may come from this port. If a key is proved, any port is allowed.
    pub(crate) fn takes_port(&self, port: u16) -> bool {
        takes_port((self.client, self.rules), port)
    }
}

fn takes_port((client, rules): (&Client, &Rules), port: u16) -> bool {
    client.is_proved() || rules.key_use == KeyUse::Only || rules.take_port(port)
}

impl Export {
    /// Offers the directory at `path`, served by `fs`, to `clients`. The most specific client that
    /// matches a peer applies, and the first of equally specific ones.
    #[must_use]
    pub fn new(
        id: ExportId,
        path: PathBuf,
        fs: Arc<dyn Fs>,
        mut clients: Vec<(Client, Arc<Rules>)>,
    ) -> Self {
        clients.sort_by_key(|(client, _)| client.rank());
        let (fsid, volume) = numbers(&*fs);
        let path_text = path.to_string_lossy().into();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let moments = AtomicU64::new(now.map_or(0, |since| since.as_nanos() as u64));
        let (settings, identity) = (Settings::default(), identity(&path, &Settings::default()));
        let (names, policy, origins) = (None, None, Vec::new());
        let counters = ExportCounters::new(clients.iter().map(|(client, _)| (client, None)), None);
        Self {
            id,
            path,
            path_text,
            fs,
            fsid,
            volume,
            clients,
            origins,
            settings,
            names,
            policy,
            identity,
            moments,
            counters,
        }
    }

    /// Returns the export with its settings, and with a cache of the names of peers; without one,
    /// entries by name match nobody. `origins` belong to the clients. The counters of `old` are
    /// continued.
    pub(crate) fn configured(
        self,
        settings: Settings,
        names: Arc<HostCache>,
        origins: Vec<RuleSource>,
        old: Option<&Self>,
    ) -> Self {
        let clients = self.clients.iter().map(|(client, _)| client).zip(origins.iter().map(Some));
        let counters = ExportCounters::new(clients, old.map(|old| &old.counters));
        let identity = identity(&self.path, &settings);
        Self { settings, names: Some(names), origins, counters, identity, ..self }
    }

    /// Returns the same export, of whose files other servers may tell, or which may be moving.
    pub(crate) fn placed(&self, refer: Option<Referral>, is_moving: bool) -> Self {
        let clients =
            self.clients.iter().map(|(client, _)| client).zip(self.origins.iter().map(Some));
        Self {
            id: self.id,
            path: self.path.clone(),
            path_text: self.path_text.clone(),
            fs: Arc::clone(&self.fs),
            fsid: self.fsid,
            volume: self.volume,
            clients: self.clients.clone(),
            origins: self.origins.clone(),
            settings: Settings { refer, is_moving, ..self.settings.clone() },
            names: self.names.clone(),
            policy: self.policy.clone(),
            identity: self.identity,
            moments: AtomicU64::new(self.moments.load(Ordering::Relaxed)),
            counters: ExportCounters::new(clients, Some(&self.counters)),
        }
    }

    /// Returns the export with a policy of the administrator.
    #[must_use]
    pub fn under(self, policy: Option<Arc<Policy>>) -> Self {
        Self { policy, ..self }
    }

    /// Returns the administrator's policy for the export.
    pub(crate) const fn policy(&self) -> Option<&Arc<Policy>> {
        self.policy.as_ref()
    }

    /// Returns the counters of its domains and clients.
    pub fn counters(&self) -> impl Iterator<Item = &Arc<ClientCounters>> {
        self.counters.all()
    }

    /// Returns the counters of peers that match no entry.
    pub(crate) fn strangers(&self) -> &ClientCounters {
        self.counters.strangers()
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> ExportId {
        self.id
    }

    /// Its path in the server's file system, at which clients mount it, too.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path as credentials name it.
    pub(crate) const fn path_text(&self) -> &str {
        &self.path_text
    }

    /// Returns nanoseconds that no reply has contained for a long time, so that a directory with
    /// this time looks changed.
    pub(crate) fn moment_nanoseconds(&self) -> u32 {
        (self.moments.fetch_add(1, Ordering::Relaxed) % 1_000_000_000) as u32
    }

    /// The settings that apply to all clients.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The servers that have its files, if this one has not.
    #[must_use]
    pub const fn referral(&self) -> Option<&Referral> {
        self.settings.refer.as_ref()
    }

    /// The clients and their rules, in the order in which they are matched.
    #[must_use]
    pub fn clients(&self) -> &[(Client, Arc<Rules>)] {
        &self.clients
    }

    /// The clients that may call from ports below 1024 only.
    pub fn clients_bound_to_low_ports(&self) -> impl Iterator<Item = &Client> {
        let entries = self.clients.iter();
        let bound = entries.filter(|(client, rules)| !takes_port((client, rules), u16::MAX));
        bound.map(|(client, _)| client)
    }

    /// The device and inode of its directory at the time when the export was made.
    pub(crate) const fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    pub(crate) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// The distribution of its files over data servers, for the administrator; `None` if it has all
    /// files itself. Clients use it by views only.
    #[must_use]
    pub fn placement(&self) -> Option<&dyn Placement> {
        self.fs.placement()
    }

    /// The top directory of its file system.
    #[must_use]
    pub fn top(&self) -> Handle {
        self.fs.root()
    }

    /// The backend's fsid of its top directory.
    pub(crate) const fn fsid(&self) -> u64 {
        self.fsid
    }

    /// The volume of its top directory.
    pub(crate) const fn volume(&self) -> u64 {
        self.volume
    }

    /// Returns the key of a file of this export in the state of clients.
    #[must_use]
    pub fn key(&self, handle: &Handle) -> FileKey {
        let one_volume = !self.settings.crosses_mounts;
        let volume = if one_volume { self.volume } else { self.fs.volume(handle) };
        FileKey { volume, export: self.id.0, handle: *handle }
    }

    /// Returns the rules for a peer, if the export is offered to it.
    #[must_use]
    pub fn rules<'p>(&self, peer: impl Into<Candidate<'p>>) -> Option<&Arc<Rules>> {
        self.judge(peer).ok().map(|(_, rules)| rules)
    }

    /// Returns the rules of the entry that applies to a peer. An IPv4 address mapped into IPv6
    /// counts as IPv4.
    ///
    /// # Errors
    /// [`Status::Acces`] if no entry matches it; [`Status::Delay`] while its name is being looked
    /// up.
    pub(crate) fn judge<'p>(
        &self,
        peer: impl Into<Candidate<'p>>,
    ) -> Result<(&Client, &Arc<Rules>)> {
        self.decide(peer).map(|Entry { client, rules, .. }| (client, rules))
    }

    /// Returns the entry that applies to a peer, with its location and its counters.
    pub(crate) fn decide<'p>(&self, peer: impl Into<Candidate<'p>>) -> Result<Entry<'_>> {
        let peer = peer.into();
        let names = || match &self.names {
            Some(names) => names.of(peer.address()),
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

    pub(crate) const fn names(&self) -> Option<&Arc<HostCache>> {
        self.names.as_ref()
    }

    /// Returns whether the required mount point is mounted.
    pub(crate) fn is_mounted(&self) -> bool {
        self.settings.is_mounted(&self.path)
    }
}

/// Returns the backend's numbers of the top directory's file system and volume.
fn numbers(fs: &dyn Fs) -> (u64, u64) {
    let root = fs.root();
    (fs.getattr(&root).map_or(0, |attr| attr.fsid), fs.volume(&root))
}

/// Returns the device and inode, which differ if another directory is at the same path. The path of
/// an export of a Ceph file system is only a name.
pub(crate) fn identity(path: &Path, settings: &Settings) -> Option<(u64, u64)> {
    if settings.ceph.path.is_some() {
        return None;
    }
    let _server = AsServer::here().ok()?;
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
