//! Configurations: reading them into a plan, and replacing the plan at a reload.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use comity_backend::{
    Ceph, CephOptions, CephSiblings, DIRECTORY, Descriptors, LeaseWatch, Location, MEMORY, Memory,
    MemoryOptions, OpenRequest, Passthrough, PassthroughOptions, Registry, Siblings,
};
use comity_export::{
    CephSource, Diagnostic, Export, ExportRequest, Exports, FindMoved, HandleKey, PlacementSpec,
    Plan, ServerSettings, Severity, Source, Sources, Whereabouts, load,
};
use comity_grants::Grants;
use comity_placement::{DataStore, PlacementKey};
use comity_state::Limits;
use comity_vfs::Fs;
use comity_vfs::layers::{Layer, ReadOnly};

use crate::options::GivenExport;
use crate::placement::{self, Unreached};
use crate::placement_change;
use crate::systemd;
use crate::tls::{self, Tls};

/// The inputs from which each plan of this process is made.
pub struct Configuration {
    sources: Sources,
    key: HandleKey,
    read_only: bool,
    /// The limit on open files, shared by all exports.
    descriptors: Descriptors,
    siblings: Siblings,
    ceph_siblings: CephSiblings,
    /// The name of this server for Ceph; a check has none.
    server_name: Option<String>,
    /// True if all callers may have root's rights.
    all_as_root: bool,
    /// True if exports are empty file systems in memory.
    in_memory: bool,
    /// An export whose file system is already open.
    given: Option<GivenExport>,
    /// The key of the metadata server and the fences of files, if this is a data server.
    data_store: Option<Arc<DataStore>>,
    /// The consequence if a data server does not answer.
    unreached: Unreached,
    /// The watch that reports when local programs access delegated files.
    leases: Option<Arc<LeaseWatch>>,
    /// The grants of keys.
    grants: Option<Arc<Grants>>,
    /// True if a backend was opened that cannot act as each caller.
    is_one_user: AtomicBool,
}

/// The error if root lacks the capabilities to act as callers.
const ALL_AS_ROOT: &str = "the server runs as root but may not act as its callers, so everybody \
    would have root's rights; give it CAP_SETUID, CAP_SETGID and CAP_DAC_OVERRIDE, run it as an \
    ordinary user, or say --all-as-root";

/// A plan with warnings; or all diagnostics, if one is an error.
pub type Loaded = Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>>;

impl Configuration {
    /// Makes a configuration of these sources; `key` signs handles.
    pub(crate) fn new(sources: Vec<Source>, key: HandleKey) -> Self {
        Self {
            sources: Sources {
                authorities: Arc::new(tls::authority_keys),
                ..Sources::new(sources)
            },
            key,
            read_only: false,
            descriptors: Descriptors::of_process(),
            siblings: Siblings::default(),
            ceph_siblings: CephSiblings::default(),
            server_name: None,
            all_as_root: false,
            in_memory: false,
            given: None,
            data_store: None,
            unreached: Unreached::TriedAgain,
            leases: None,
            grants: None,
            is_one_user: AtomicBool::new(false),
        }
    }

    /// Returns the bounds of the clients' state: no more delegations than files can have leases, so
    /// that clients are asked to return some before others are refused, and no more locked files
    /// than there are descriptors for.
    pub(crate) fn bounds(&self, limits: Limits) -> Limits {
        let by_leases = self.leases.is_some() && !self.in_memory;
        if !by_leases {
            return limits;
        }
        let delegations = limits.delegations.min(self.descriptors.leases_max());
        let locked_files = limits.locked_files.min(self.descriptors.locked_files_max());
        Limits { delegations, locked_files, ..limits }
    }

    /// Makes all exports read-only, regardless of their rules.
    pub(crate) fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Allows that all callers have root's rights, if the process cannot act as each caller.
    pub(crate) fn all_as_root(self, all_as_root: bool) -> Self {
        Self { all_as_root, ..self }
    }

    /// Replaces all exports by empty file systems in memory.
    pub(crate) fn in_memory(self, in_memory: bool) -> Self {
        Self { in_memory, ..self }
    }

    /// Replaces the folder of one export by a file system that is already open.
    #[must_use]
    pub fn given(self, given: Option<GivenExport>) -> Self {
        Self { given, ..self }
    }

    /// Names this server for file systems that remember their clients.
    pub(crate) fn named(self, server_id: [u8; 8]) -> Self {
        Self { server_name: Some(format!("{:016x}", u64::from_be_bytes(server_id))), ..self }
    }

    /// Makes this a data server of the metadata server with this key.
    pub(crate) fn storing(self, placement_key: Option<PlacementKey>) -> Self {
        Self { data_store: placement_key.map(DataStore::new).map(Arc::new), ..self }
    }

    /// Sets the watch that reports when local programs access delegated files.
    pub(crate) fn leases(self, leases: Option<Arc<LeaseWatch>>) -> Self {
        Self { leases, ..self }
    }

    /// Sets the table of exports that were moved.
    pub(crate) fn moved(mut self, moved: Arc<FindMoved>) -> Self {
        self.sources.moved = moved;
        self
    }

    /// Sets the grants of keys.
    pub(crate) fn granting(self, grants: Arc<Grants>) -> Self {
        Self { grants: Some(grants), ..self }
    }

    /// Makes a configuration for a check only: no handle leaves the process.
    pub fn to_look_at(sources: Vec<Source>) -> Self {
        let unreached = Unreached::Refused;
        let is_of_head = server_settings(&sources).is_ok_and(|written| written.cluster.is_some());
        // No thread listens to the watch, so that nothing is held.
        let leases = Some(Arc::default());
        let looked_at = Self { unreached, leases, ..Self::new(sources, HandleKey::new([0; 16])) };
        // In a cluster `home` names a head, which is no peer.
        if is_of_head { looked_at.moved(Arc::new(|_| Some(Whereabouts::Here))) } else { looked_at }
    }

    /// Reads all sources and opens the exports; exports of `old` stay open.
    pub fn load(&self, old: Option<&Plan>) -> Loaded {
        self.load_from(&self.sources, old, placement_change::changed)
    }

    /// Reads all sources. `changed` returns the file system of an export that stays open.
    fn load_from(
        &self,
        sources: &Sources,
        old: Option<&Plan>,
        changed: impl Fn(&Arc<dyn Fs>, Option<&PlacementSpec>) -> anyhow::Result<Arc<dyn Fs>>,
    ) -> Loaded {
        let open = |request: &ExportRequest<'_>| -> Result<Arc<dyn Fs>, String> {
            match request.kept {
                // A file system that is read-only hides its placement, which then stays.
                Some(kept) if self.read_only => Ok(Arc::clone(kept)),
                Some(kept) => changed(kept, request.placement).map_err(|why| format!("{why:#}")),
                None => self.open_anew(request),
            }
        };
        let (plan, doubts) = load(sources, &open, self.key.clone(), old)?;
        let plan = plan.granting(self.grants.clone()).storing(self.data_store.as_ref());
        Ok((plan, doubts))
    }

    /// Returns whether all callers act with the rights of the server's own user.
    pub(crate) fn is_one_user(&self) -> bool {
        self.is_one_user.load(Ordering::Relaxed)
    }

    fn open_anew(&self, request: &ExportRequest<'_>) -> Result<Arc<dyn Fs>, String> {
        let fs = self.open(request)?;
        let fs = match (request.placement, request.shared) {
            (Some(spec), Some(old)) => placement_change::put_over_again(fs, old, spec),
            (Some(spec), None) => placement::put_over(fs, spec, self.unreached),
            (None, _) => Ok(fs),
        };
        let fs = fs.map_err(|why| format!("{why:#}"))?;
        Ok(if self.read_only { Arc::new(Layer::new(fs, ReadOnly)) } else { fs })
    }

    fn open(&self, request: &ExportRequest<'_>) -> Result<Arc<dyn Fs>, String> {
        if let Some(given) = self.given.as_ref().filter(|given| given.path == request.path) {
            return Ok(Arc::clone(&given.fs));
        }
        if let Some(path) = &request.ceph.path
            && !self.in_memory
        {
            return self.open_ceph(path, request.ceph);
        }
        let backends = Registry::default()
            .with(DIRECTORY, |request| self.open_directory(request))
            .with(MEMORY, |_| in_memory());
        let location = if self.in_memory || request.is_absent {
            Location { scheme: MEMORY, place: request.path }
        } else {
            Location::parse(request.path)
        };
        backends.open(&OpenRequest { location, cross_mounts: request.crosses_mounts })
    }

    fn open_ceph(&self, path: &Path, source: &CephSource) -> Result<Arc<dyn Fs>, String> {
        let CephSource { configuration, id, file_system, .. } = source;
        let options = CephOptions {
            configuration: configuration.as_deref(),
            id: id.as_deref(),
            file_system: file_system.as_deref(),
            server: self.server_name.as_deref(),
            siblings: self.ceph_siblings.clone(),
            leases: self.leases.clone(),
        };
        Ok(Arc::new(Ceph::open(path, options)?))
    }

    fn open_directory(&self, request: &OpenRequest<'_>) -> Result<Arc<dyn Fs>, String> {
        let path = request.location.place;
        let options = PassthroughOptions {
            cross_mounts: request.cross_mounts,
            descriptors: Some(self.descriptors.clone()),
            leases: self.leases.clone(),
            siblings: self.siblings.clone(),
        };
        let opened = Passthrough::open(path, options);
        let opened = opened.map_err(|error| without_path(path, &error.to_string()))?;
        let is_one_user = !opened.capabilities().caller_identities;
        if is_one_user && rustix::process::geteuid().is_root() && !self.all_as_root {
            return Err(ALL_AS_ROOT.to_owned());
        }
        self.is_one_user.fetch_or(is_one_user, Ordering::Relaxed);
        Ok(Arc::new(opened))
    }
}

/// Reads the `[server]` part of a configuration.
///
/// # Errors
/// All findings, if one is an error.
pub fn server_settings(sources: &[Source]) -> Result<ServerSettings, Vec<Diagnostic>> {
    Ok(Sources::new(sources.to_vec()).read()?.server)
}

/// Reloads the exports.
pub(crate) struct Reload {
    configuration: Configuration,
    exports: Arc<Exports>,
    /// The `[server]` part of the configuration at the start of the server.
    written: ServerSettings,
    /// The clients' state: a reload recalls delegations from exports in which it hides files.
    memory: comity_nfs4::Memory,
    /// TLS, whose key a reload reads again, too.
    tls: Option<Arc<Tls>>,
    /// Locked during a reload.
    turn: Mutex<()>,
}

impl Reload {
    pub(crate) fn new(
        configuration: Configuration,
        exports: Arc<Exports>,
        memory: comity_nfs4::Memory,
        written: ServerSettings,
    ) -> Self {
        Self { configuration, exports, written, memory, tls: None, turn: Mutex::new(()) }
    }

    /// Has each reload read the key of TLS again, too.
    pub(crate) fn renewing(self, tls: Option<Arc<Tls>>) -> Self {
        Self { tls, ..self }
    }

    /// Waits for the end of other changes of the plan. Others wait until the result is dropped.
    pub(crate) fn turn(&self) -> PlanTurn<'_> {
        let guard = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        PlanTurn { reload: self, _guard: guard }
    }

    /// Does the same as [`Reload::turn`], but does not wait.
    pub(crate) fn try_turn(&self) -> Option<PlanTurn<'_>> {
        match self.turn.try_lock() {
            Ok(guard) => Some(PlanTurn { reload: self, _guard: guard }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(PlanTurn { reload: self, _guard: poisoned.into_inner() })
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The TOML file of the configuration, if there is one.
    pub(crate) fn configuration_file(&self) -> Option<PathBuf> {
        let mut sources = self.configuration.sources.list.iter();
        let file = sources.find_map(|source| match source {
            Source::Config(path) => Some(path),
            _ => None,
        })?;
        std::path::absolute(file).ok()
    }

    /// See [`Configuration::is_one_user`].
    pub(crate) fn is_one_user(&self) -> bool {
        self.configuration.is_one_user()
    }

    /// Reads the configuration again and applies it; returns its warnings.
    ///
    /// # Errors
    /// All findings, if one is an error; the old plan then stays in force.
    pub(crate) fn perform(&self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        systemd::reloading();
        let reloaded = self.replace();
        systemd::ready();
        let (Ok(findings) | Err(findings)) = &reloaded;
        log(findings);
        match &reloaded {
            Ok(_) => tracing::info!("configuration reloaded"),
            Err(_) => tracing::error!("configuration refused; the old one stays in force"),
        }
        reloaded
    }

    fn replace(&self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let old = Arc::clone(&self.exports.current());
        let (plan, findings) = self.configuration.load(Some(&old))?;
        if let Some(tls) = &self.tls {
            tls.renew(&plan).map_err(|error| vec![key_error(&error)])?;
        }
        self.exports.replace(plan);
        self.recall_cloaked();
        // Recall delegations of directories, because the id maps, the cloaks and the exports below
        // a directory affect what callers see in it.
        self.memory.engine.recall_directories(self.memory.clock.now());
        if server_settings(&self.configuration.sources.list)? != self.written {
            tracing::warn!("[server] has changed: restart the server to apply it");
        }
        Ok(findings)
    }

    /// Recalls the delegations of cloaked exports: a client serves a delegated file to all users of
    /// its machine without asking. The same holds for exports whose files other servers have now:
    /// without a call a client would not learn of it.
    fn recall_cloaked(&self) {
        let comity_nfs4::Memory { engine, clock, .. } = &self.memory;
        let is_cloaked = |export: &&Arc<Export>| {
            let hides = export.clients().iter().any(|(_, it)| !it.cloak.is_empty());
            hides || export.referral().is_some()
        };
        let plan = self.exports.current();
        for export in plan.exports().iter().filter(is_cloaked) {
            engine.recall_export(clock.now(), export.id().0);
        }
    }
}

/// The right to replace the plan.
pub(crate) struct PlanTurn<'r> {
    reload: &'r Reload,
    _guard: MutexGuard<'r, ()>,
}

impl PlanTurn<'_> {
    /// Makes a plan in which exports are where `moved` says. It is not in force yet.
    ///
    /// # Errors
    /// The first error of the configuration.
    pub(crate) fn load(&self, moved: Arc<FindMoved>) -> Result<Plan, String> {
        let Reload { configuration, exports, .. } = self.reload;
        let old = Arc::clone(&exports.current());
        let sources = Sources { moved, ..configuration.sources.clone() };
        // Only a reload changes placements.
        let kept = |kept: &Arc<dyn Fs>, _: Option<&PlacementSpec>| Ok(Arc::clone(kept));
        match configuration.load_from(&sources, Some(&old), kept) {
            Ok((plan, _)) => Ok(plan),
            Err(found) => {
                let error = found.into_iter().find(|it| it.severity == Severity::Error);
                Err(error.map(|error| error.to_string()).unwrap_or_default())
            }
        }
    }

    /// Puts a plan in force; returns the old one.
    pub(crate) fn put_in_force(&self, plan: impl Into<Arc<Plan>>) -> Arc<Plan> {
        self.reload.exports.replace(plan)
    }
}

/// Makes a finding of an error with the TLS key or an authority.
fn key_error(error: &anyhow::Error) -> Diagnostic {
    let place = comity_export::Location::file("TLS");
    Diagnostic { severity: comity_export::Severity::Error, place, text: format!("{error:#}") }
}

/// Logs findings by their severity.
pub(crate) fn log(findings: &[Diagnostic]) {
    for finding in findings {
        let place = &finding.place;
        match finding.severity {
            comity_export::Severity::Error => tracing::error!(%place, "{}", finding.text),
            comity_export::Severity::Warning => tracing::warn!(%place, "{}", finding.text),
        }
    }
}

/// Makes an empty file system in memory.
fn in_memory() -> Result<Arc<dyn Fs>, String> {
    match Memory::new(MemoryOptions::of_process()) {
        Ok(memory) => Ok(Arc::new(memory)),
        Err(error) => Err(error.to_string()),
    }
}

/// Removes the path from a backend's error, because the finding already names it.
fn without_path(path: &Path, text: &str) -> String {
    let rest = text.strip_prefix(&format!("{}: ", path.display()));
    rest.unwrap_or(text).to_owned()
}
