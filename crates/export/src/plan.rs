use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use comity_grants::Grants;
use comity_placement::DataStore;
use comity_vfs::{
    FileHold, FileKey, Handle, LocalLocks, LocalUse, Placement, RangeLock, Result, Status, Time,
};

use crate::host_cache::HostCache;
use crate::layout_callers::LayoutCallers;
use crate::limits::EXPORTS_MAX;
use crate::{Export, ExportId, HandleKey, PeerServer, RpcPeer, SealedHandle};

/// All exports that are offered at one time. It never changes: a reload makes another plan.
pub struct Plan {
    generation: u64,
    moment: Time,
    key: HandleKey,
    exports: Vec<Arc<Export>>,
    /// The rights of keys; none if the server does not support keys.
    grants: Option<Arc<Grants>>,
    /// The callers with a layout, if the exports are the data of a metadata server.
    layouts: Option<LayoutCallers>,
    /// The servers with which this one exchanges exports.
    peers: Vec<PeerServer>,
    /// The volumes of exports that earlier plans had: clients still give back what they hold there.
    gone: Vec<(ExportId, u64)>,
    /// The exports with a placement that earlier plans had, the newest first. A move of a file or a
    /// call may still use one. Only moves, calls and peers keep them, so their number is bounded.
    placed_before: Vec<Weak<Export>>,
}

impl Plan {
    /// Makes a plan of these exports.
    #[must_use]
    pub fn new(key: HandleKey, exports: Vec<Arc<Export>>) -> Self {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        Self {
            generation,
            moment: now(),
            key,
            exports,
            grants: None,
            layouts: None,
            peers: Vec::new(),
            gone: Vec::new(),
            placed_before: Vec::new(),
        }
    }

    /// Adds the servers with which this one exchanges exports.
    #[must_use]
    pub fn peering(self, peers: Vec<PeerServer>) -> Self {
        Self { peers, ..self }
    }

    /// Returns the servers with which this one exchanges exports.
    #[must_use]
    pub fn peers(&self) -> &[PeerServer] {
        &self.peers
    }

    /// Returns the server of this name with which this one exchanges exports.
    #[must_use]
    pub fn peer_named(&self, name: &str) -> Option<&PeerServer> {
        self.peers.iter().find(|peer| *peer.name == *name)
    }

    /// Returns whether a peer has this address.
    #[must_use]
    pub fn is_address_of_peer(&self, address: IpAddr) -> bool {
        self.peers.iter().any(|peer| peer.addresses.contains(&address.to_canonical()))
    }

    /// Returns the peer that a visitor has proved to be by its key.
    #[must_use]
    pub fn peer_of(&self, visitor: &RpcPeer) -> Option<&PeerServer> {
        let key = visitor.key()?;
        self.peers.iter().find(|peer| peer.key == key)
    }

    /// Adds the rights of keys to the plan.
    #[must_use]
    pub fn granting(self, grants: Option<Arc<Grants>>) -> Self {
        Self { grants, ..self }
    }

    /// The same plan for a data server, which takes the layouts of the metadata server that has
    /// the key of this store, from any address.
    #[must_use]
    pub fn storing(self, store: Option<&Arc<DataStore>>) -> Self {
        let layouts = store.map(|store| LayoutCallers::new(store, &self.exports));
        Self { layouts, ..self }
    }

    /// The callers with a layout, if this is the plan of a data server.
    pub(crate) const fn layouts(&self) -> Option<&LayoutCallers> {
        self.layouts.as_ref()
    }

    /// The rights of keys, if keys are known here.
    #[inline]
    pub(crate) const fn grants(&self) -> Option<&Arc<Grants>> {
        self.grants.as_ref()
    }

    /// Passes the policies of the exports to the grants.
    fn trust_policies(&self) {
        let policies = self.exports.iter().filter_map(|export| export.policy()).cloned();
        self.grants.iter().for_each(|grants| grants.trust(policies.clone().collect()));
    }

    /// Returns the plan as the successor of `old`.
    pub(crate) fn after(mut self, old: &Self) -> Self {
        let known = old.exports.iter().filter(|export| export.referral().is_none());
        let known = known.map(|export| (export.id(), export.volume()));
        let known = known.chain(old.gone.iter().copied());
        let gone = known.filter(|(id, _)| self.present(*id).is_none());
        self.gone = gone.take(EXPORTS_MAX).collect();
        let is_own = |export: &Arc<Export>| self.exports.iter().any(|own| Arc::ptr_eq(own, export));
        let before = old.placed().filter(|export| !is_own(export));
        self.placed_before = before.map(|export| Arc::downgrade(&export)).collect();
        self
    }

    /// Returns the exports with a placement, and then those of earlier plans that are still used.
    pub(crate) fn placed(&self) -> impl Iterator<Item = Arc<Export>> {
        let current = self.exports.iter().filter(|export| export.placement().is_some()).cloned();
        current.chain(self.placed_before.iter().filter_map(Weak::upgrade))
    }

    /// Returns the plan as its own successor, with other exports of the same numbers.
    pub(crate) fn replacing(&self, others: &[Arc<Export>]) -> Self {
        let export = |export: &Arc<Export>| {
            let other = others.iter().find(|other| other.id() == export.id());
            Arc::clone(other.unwrap_or(export))
        };
        let exports = self.exports.iter().map(export).collect();
        let plan = Self::new(self.key.clone(), exports).granting(self.grants.clone());
        let store = self.layouts.as_ref().map(LayoutCallers::store);
        plan.storing(store).peering(self.peers.clone()).after(self)
    }

    /// Its exports.
    #[must_use]
    pub fn exports(&self) -> &[Arc<Export>] {
        &self.exports
    }

    /// Returns the export with this path.
    #[must_use]
    pub fn export_at(&self, path: &Path) -> Option<&Arc<Export>> {
        self.exports.iter().find(|export| export.path() == path)
    }

    /// Returns the time at which it was made, which is the time of change of the directories above
    /// the exports.
    pub(crate) const fn moment(&self) -> Time {
        self.moment
    }

    /// Returns its number, which differs for each plan.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns an object's handle as clients know it, for calls to clients.
    #[must_use]
    pub fn seal(&self, export: ExportId, handle: &Handle) -> SealedHandle {
        self.key.seal(export, handle)
    }

    /// Returns the export and the object of a handle from the wire, whoever sent it. It serves to
    /// find existing state, never to admit a caller.
    ///
    /// # Errors
    /// [`Status::BadHandle`].
    pub fn unseal(&self, sealed: &[u8]) -> Result<(ExportId, Handle)> {
        self.key.open(sealed)
    }

    /// Returns the handle in the export of this key, for a call to a client.
    #[must_use]
    pub fn seal_key(&self, file: &FileKey) -> SealedHandle {
        self.seal(ExportId(file.export), &file.handle)
    }

    /// Returns the key of the file of a handle from the wire, whoever sent it. It must not be used
    /// to admit a caller.
    ///
    /// # Errors
    /// [`Status::BadHandle`]; [`Status::Stale`] if the export has not existed for a long time.
    pub fn unseal_key(&self, sealed: &[u8]) -> Result<FileKey> {
        let (id, handle) = self.unseal(sealed)?;
        if let Some(export) = self.present(id) {
            return Ok(export.key(&handle));
        }
        let (_, volume) = self.gone.iter().find(|(gone, _)| *gone == id).ok_or(Status::Stale)?;
        Ok(FileKey { volume: *volume, export: id.0, handle })
    }

    /// Returns a readable name of an object: the path of its export, and its inode number for `find
    /// -inum`, if it still exists. It is for administrators, not for clients.
    #[must_use]
    pub fn locate(&self, file: &FileKey) -> Option<(&Path, Option<u64>)> {
        let export = self.export_of(file)?;
        let fileid = export.fs().getattr(&file.handle).ok().map(|attr| attr.fileid);
        Some((export.path(), fileid))
    }

    /// See [`LocalLocks::hold_range`]. It is not a verb of a view, because all clients share these
    /// locks.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if there are no other programs, or the export is gone; [`Status`].
    pub fn hold_range(&self, file: &FileKey, bytes: (u64, u64), lock: RangeLock) -> Result<bool> {
        let locks = local_locks(self.export_of(file))?;
        locks.hold_range(&file.handle, bytes, lock)
    }

    /// See [`LocalLocks::is_range_free`].
    ///
    /// # Errors
    /// As [`Plan::hold_range`].
    pub fn is_range_free(
        &self,
        file: &FileKey,
        bytes: (u64, u64),
        lock: RangeLock,
    ) -> Result<bool> {
        let locks = local_locks(self.export_of(file))?;
        locks.is_range_free(&file.handle, bytes, lock)
    }

    /// See [`LocalLocks::hold_file`]. It is not a verb of a view, because it serves delegations. A
    /// file is held through the export of its key, which the client uses for its data.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if there are no other programs, or the export is gone; [`Status`].
    pub fn hold_file(&self, file: &FileKey, hold: FileHold) -> Result<bool> {
        let locks = local_locks(self.export(ExportId(file.export)))?;
        locks.hold_file(&file.handle, hold)
    }

    /// See [`comity_vfs::Placement::fence`]. It is not a verb of a view, because it ends what
    /// clients may do. A file that is gone, or not on data servers, needs no fence.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if the export is gone; [`Status`].
    pub fn fence(&self, file: &FileKey) -> Result<()> {
        self.in_placement(file, |placement| placement.fence(&file.handle))
    }

    /// See [`comity_vfs::Placement::learn_size`]. It is not a verb of a view, because it has no
    /// caller. A file that is gone, or not on data servers, has no size there.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if the export is gone; [`Status`].
    pub fn learn_size(&self, file: &FileKey) -> Result<()> {
        self.in_placement(file, |placement| placement.learn_size(&file.handle))
    }

    /// Does work on a file of a placement, unless the file is gone or elsewhere.
    fn in_placement(
        &self,
        file: &FileKey,
        work: impl FnOnce(&dyn Placement) -> Result<()>,
    ) -> Result<()> {
        let export = self.export_of(file).ok_or(Status::NotSupp)?;
        match export.fs().placement().map(work) {
            None | Some(Ok(()) | Err(Status::Stale | Status::NoEnt)) => Ok(()),
            Some(Err(status)) => Err(status),
        }
    }

    /// Writes the labels of data files, once a second: see `Placement::write_labels`.
    pub fn write_labels(&self) {
        let placements = self.exports.iter().filter_map(|export| export.placement());
        placements.for_each(|placement| placement.write_labels());
    }

    /// Closes files that were removed, once a second: see `Fs::release_removed`.
    pub fn release_removed(&self) {
        self.exports.iter().for_each(|export| export.fs().release_removed());
    }

    /// Returns files that are held and that programs use; each use is returned once
    /// ([`LocalLocks::poll_wanted`]).
    pub fn wanted(&self) -> impl Iterator<Item = (FileKey, LocalUse)> {
        self.exports.iter().flat_map(|export| {
            let locks = export.fs().local_locks();
            let wanted = std::iter::from_fn(move || locks?.poll_wanted());
            wanted.map(|(handle, local)| (export.key(&handle), local))
        })
    }

    /// Returns the cache of the names of peers, which all exports share; none if there are no
    /// exports.
    pub(crate) fn names(&self) -> Option<&HostCache> {
        self.exports.iter().find_map(|export| export.names()).map(|names| &**names)
    }

    /// Returns whether some entry of a client list matches by a proof.
    pub(crate) fn asks_for_proofs(&self) -> bool {
        let clients = self.exports.iter().flat_map(|export| export.clients());
        clients.into_iter().any(|(client, _)| client.is_proved())
    }

    /// The files of authorities that entries of client lists name.
    #[must_use]
    pub fn authority_files(&self) -> BTreeSet<&Path> {
        let clients = self.exports.iter().flat_map(|export| export.clients());
        clients.into_iter().filter_map(|(client, _)| client.authority_file()).collect()
    }

    /// Returns whether some entry of a client list matches by the name of the peer.
    pub(crate) fn asks_for_names(&self) -> bool {
        let clients = self.exports.iter().flat_map(|export| export.clients());
        clients.into_iter().any(|(client, _)| client.needs_names())
    }

    /// Looks up the name of a peer, if an entry may need it, and waits for the answer. Tools call
    /// it before they ask what the peer may do. A server never waits for a name.
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

    /// Returns the export of a key; if it is gone, another export of its volume.
    pub(crate) fn export_of(&self, file: &FileKey) -> Option<&Arc<Export>> {
        let shows = |export: &&Arc<Export>| export.volume() == file.volume;
        self.present(ExportId(file.export)).or_else(|| self.exports.iter().find(shows))
    }

    /// Returns the export of a number, if its files are on this server. State of files that were
    /// here before an export got a referral is found as that of an export that is gone.
    fn present(&self, id: ExportId) -> Option<&Arc<Export>> {
        self.export(id).filter(|export| export.referral().is_none())
    }

    /// Returns the export of a number; none if it is no longer offered.
    #[must_use]
    pub fn export(&self, id: ExportId) -> Option<&Arc<Export>> {
        self.exports.iter().find(|export| export.id() == id)
    }
}

/// Returns the interface of an export's file system to programs of this machine.
fn local_locks(export: Option<&Arc<Export>>) -> Result<&dyn LocalLocks> {
    export.and_then(|export| export.fs().local_locks()).ok_or(Status::NotSupp)
}

/// The plan in force. Each request uses one plan throughout.
pub struct Exports {
    plan: ArcSwap<Plan>,
    /// The plan's generation, which the gate reads without a reference to the plan.
    generation: AtomicU64,
    refused: AtomicU64,
    /// The other heads, if this server is a head of a cluster.
    heads: ArcSwapOption<Vec<PeerServer>>,
}

impl Exports {
    /// Makes a plan the first one in force.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        plan.trust_policies();
        let generation = AtomicU64::new(plan.generation);
        let (plan, refused) = (ArcSwap::from_pointee(plan), AtomicU64::new(0));
        Self { plan, generation, refused, heads: ArcSwapOption::empty() }
    }

    /// The plan in force now.
    #[must_use]
    pub fn current(&self) -> Guard<Arc<Plan>> {
        self.plan.load()
    }

    /// Replaces the plan in force, for all requests that begin from now on. Returns the old plan:
    /// requests use it as long as there are other references to it.
    pub fn replace(&self, plan: impl Into<Arc<Plan>>) -> Arc<Plan> {
        let plan = plan.into();
        let generation = plan.generation;
        let old = self.plan.swap(Arc::clone(&plan));
        self.generation.store(generation, Ordering::Release);
        plan.trust_policies();
        old
    }

    /// Returns the number of calls that the gate refused, because no export is offered to their
    /// peer.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) const fn heads(&self) -> &ArcSwapOption<Vec<PeerServer>> {
        &self.heads
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

/// Returns the present time in the form of attributes.
fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}
