//! Attributes and rights: cached ones are used while they are valid.

use std::sync::atomic::Ordering;

use comity_vfs::{Access, Attr, Change, Cred, DelegationNumber, Disk, Handle, Result, Status};

use super::Cache;
use crate::attribute_cache::{Asked, Step};
use crate::counters::count;
use crate::listing_cache::ListingEdit;
use crate::page_store::FileVersion;
use crate::verdict_cache::CallerId;

/// The version of a file with these attributes.
pub(super) const fn version(attr: &Attr<Disk>) -> FileVersion {
    FileVersion { change: attr.change, size: attr.size }
}

impl Cache {
    /// The attributes from the file system below, if valid ones are cached.
    pub(super) fn true_attr(&self, node: &Handle) -> Option<Attr<Disk>> {
        let attr = self.attributes.get(node, self.now(), self.is_true(node))?;
        count(&self.counters.spared, 1);
        Some(attr)
    }

    /// The attributes from the file system below: cached or fetched.
    pub(super) fn attr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.true_attr(node).map_or_else(|| self.fetch_attr(node), Ok)
    }

    pub(super) fn fetch_attr(&self, node: &Handle) -> Result<Attr<Disk>> {
        let asked = self.attributes.ask();
        let fetched = self.fetch_with_grant(node).unwrap_or_else(|| {
            let grant = self.grant_of(node);
            let attr = self.fs.getattr(node)?;
            self.note_under_grant(node, attr, asked, grant);
            Ok(attr)
        });
        fetched.or_else(|status| self.offline(node, status))
    }

    /// The last known attributes, if the file system below cannot be reached and the options allow
    /// to use them.
    fn offline(&self, node: &Handle, status: Status) -> Result<Attr<Disk>> {
        self.attributes.last(node).filter(|_| self.is_offline(status)).ok_or(status)
    }

    /// Returns whether cached state may be used after this failure.
    pub(super) const fn is_offline(&self, status: Status) -> bool {
        self.options.offline && matches!(status, Status::Io | Status::Delay)
    }

    /// Notes attributes of a reply, unless they may be older than the cached ones; returns whether
    /// they were noted.
    pub(super) fn note(&self, node: &Handle, attr: Attr<Disk>, asked: Asked) -> bool {
        let is_true = self.is_true(node);
        if is_true && !self.attributes.is_late(node, asked) {
            self.carry(node, &attr);
        }
        self.attributes.note(node, attr, asked, (self.now(), is_true))
    }

    /// The number of the delegation of a file.
    pub(super) fn grant_of(&self, node: &Handle) -> Option<DelegationNumber> {
        self.fs.open_files()?.file_grant(node)
    }

    /// Notes attributes that were fetched under a delegation of a file or came with it. The first
    /// ones under a delegation show whether the file has changed since the earlier cached state.
    pub(super) fn note_under_grant(
        &self,
        node: &Handle,
        attr: Attr<Disk>,
        asked: Asked,
        grant: Option<DelegationNumber>,
    ) {
        match grant.filter(|grant| self.grant_of(node) == Some(*grant)) {
            Some(grant) if self.attributes.grant(node) != Some(grant) => {
                self.attributes.note_granted(node, attr, asked, (self.now(), grant));
            }
            _ => drop(self.note(node, attr, asked)),
        }
    }

    /// Keeps the pages of a delegated file whose change attribute differs from the one cached under
    /// the same delegation. No other client can have changed it: this client renamed it, or wrote
    /// to it and got no attributes in the reply.
    fn carry(&self, node: &Handle, attr: &Attr<Disk>) {
        let known = self.attributes.last(node);
        let known = known.filter(|known| known.change != attr.change && known.size == attr.size);
        if let Some(known) = known {
            self.store.carry(&self.file(node), known.change, version(attr));
        }
    }

    /// Makes a change of an object and notes it. A change that fails may still have been made.
    pub(super) fn change(
        &self,
        node: &Handle,
        work: impl FnOnce() -> Result<Change<Disk>>,
    ) -> Result<Change<Disk>> {
        let asked = self.attributes.ask();
        let change = work();
        match &change {
            Ok(change) => drop(self.note_own(node, change, asked)),
            Err(_) => self.attributes.expire(node),
        }
        change
    }

    /// Notes a change of an object that was made through this cache.
    pub(super) fn note_own(
        &self,
        node: &Handle,
        change: &Change<Disk>,
        asked: Asked,
    ) -> Option<Step> {
        let before = change.before.map(|attr| attr.change);
        self.attributes.note_own(node, (before, change.after), asked, self.now())
    }

    /// Notes a change of a directory's names that was made through this cache. Its listings stay
    /// cached if no other change came between; returns the versions before and after it then.
    pub(super) fn note_own_names(
        &self,
        dir: &Handle,
        change: &Change<Disk>,
        asked: Asked,
        edit: Option<&ListingEdit>,
    ) -> Option<Step> {
        let step = self.note_own(dir, change, asked);
        if let (Some(step), Some(edit)) = (step, edit) {
            self.listings.edit(dir, step, edit);
        }
        step
    }

    /// The caller's rights among `wanted`, and the object's attributes from the file system below.
    pub(super) fn rights(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let caller = CallerId::of(cred);
        if let Some(attr) = self.true_attr(node) {
            let generation = self.attributes.generation(node);
            if let Some(granted) = self.verdicts.get(caller, node, wanted, generation) {
                return Ok((granted, attr));
            }
            self.counters.spared.fetch_sub(1, Ordering::Relaxed);
        }
        let asked = self.attributes.ask();
        // Asking for all rights costs no more than asking for one.
        let (granted, attr) = match self.fs.access(cred, node, Access::ALL) {
            Err(status) if self.is_offline(status) => {
                let generation = self.attributes.generation(node);
                let granted = self.verdicts.get(caller, node, wanted, generation).ok_or(status)?;
                return Ok((granted, self.attributes.last(node).ok_or(status)?));
            }
            verdict => verdict?,
        };
        if self.note(node, attr, asked) {
            let generation = self.attributes.generation(node);
            self.verdicts.note(caller, node, (Access::ALL, granted), generation);
        }
        Ok((granted & wanted, attr))
    }

    /// Returns whether a caller may read a file's data, by the rules of [`comity_vfs::Fs::read`].
    pub(super) fn may_read(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        let wanted = Access::READ | Access::EXECUTE;
        let (granted, attr) = self.rights(cred, node, wanted)?;
        Ok(granted.intersects(wanted) || attr.uid == cred.uid)
    }
}
