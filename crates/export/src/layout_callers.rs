//! The callers that a data server lets in by a layout of its metadata server.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use comity_credential::Credential;
use comity_idmap::{Ids, Squash};
use comity_placement::{DataStore, Fences, LayoutHandle, Passed};
use comity_vfs::{Cred, Gid, Handle, Result, Status, Uid};

use crate::key_identity::KeyIdentity;
use crate::resolved_caller::ResolvedCaller;
use crate::{ClientCounters, Export, ExportId, Rules};

/// The callers with a layout, made once for all of them: whoever shows such a handle may do the
/// same.
pub(crate) struct LayoutCallers {
    store: Arc<DataStore>,
    /// For each export, the caller that reads and the one that also writes.
    callers: HashMap<ExportId, [Arc<ResolvedCaller>; 2]>,
}

impl LayoutCallers {
    pub(crate) fn new(store: &Arc<DataStore>, exports: &[Arc<Export>]) -> Self {
        let both = |export: &Arc<Export>| Some([made(export, true)?, made(export, false)?]);
        let present = exports.iter().filter(|export| export.referral().is_none());
        let callers = present.filter_map(|export| Some((export.id(), both(export)?)));
        Self { store: Arc::clone(store), callers: callers.collect() }
    }

    /// The key of the metadata server, and the fences of files.
    pub(crate) const fn store(&self) -> &Arc<DataStore> {
        &self.store
    }

    /// Opens the handle of a layout.
    ///
    /// # Errors
    /// [`Status::BadHandle`].
    pub(crate) fn open<'h>(&self, sealed: &'h [u8]) -> Result<LayoutHandle<'h>> {
        self.store.key.open(sealed).ok_or(Status::BadHandle)
    }

    /// The fences of the files.
    pub(crate) fn fences(&self) -> &Fences {
        &self.store.fences
    }

    /// Lets a call by a layout pass the fence of its file.
    ///
    /// # Errors
    /// [`Status::Stale`] if the fence was raised since the layout was given out; [`Status`].
    pub(crate) fn pass(
        &self,
        caller: &ResolvedCaller,
        (file, layout): (&Handle, &LayoutHandle<'_>),
    ) -> Result<Arc<Passed>> {
        let fs = &**caller.export().fs();
        self.store.fences.pass(fs, file, layout.fence).map(Arc::new)
    }

    pub(crate) fn caller(&self, export: ExportId, writes: bool) -> Option<Arc<ResolvedCaller>> {
        let [reader, writer] = self.callers.get(&export)?;
        Some(Arc::clone(if writes { writer } else { reader }))
    }
}

/// The files belong to the user of the metadata server, so layouts are used under its ids.
fn made(export: &Arc<Export>, read_only: bool) -> Option<Arc<ResolvedCaller>> {
    let ids = Ids { squash: Squash::None, ..Ids::default() };
    let rules = Arc::new(Rules { read_only, ids, ..Rules::default() });
    let claimed = Credential::Sys(Cred::new(Uid::new(0), Gid::new(0)));
    let from = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), &KeyIdentity::None(None));
    let counters = Arc::new(ClientCounters::default());
    let resolved = ResolvedCaller::of(export, &rules, from, &claimed, &counters);
    resolved.ok().map(ResolvedCaller::by_layout).map(Arc::new)
}
