//! Attributes and rights: known ones are used as long as they are true.

use std::sync::atomic::Ordering;

use comity_vfs::{Access, Attr, Change, Cred, DelegationNumber, Disk, Handle, Result, Status};

use super::Cache;
use crate::attribute_cache::{Asked, Step};
use crate::counters::count;
use crate::listing_cache::ListingEdit;
use crate::page_store::FileVersion;
use crate::verdict_cache::CallerId;

/// The version of a file that has these attributes.
pub(super) const fn version(attr: &Attr<Disk>) -> FileVersion {
    FileVersion { change: attr.change, size: attr.size }
}

impl Cache {
    /// The attributes as the file system below has them, if they are known to be true.
    pub(super) fn true_attr(&self, node: &Handle) -> Option<Attr<Disk>> {
        let attr = self.attributes.get(node, self.now(), self.is_true(node))?;
        count(&self.counters.spared, 1);
        Some(attr)
    }

    /// The attributes as the file system below has them: known ones, or fetched.
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

    /// The attributes known last, while the file system below cannot be reached and the options
    /// let them be used.
    fn offline(&self, node: &Handle, status: Status) -> Result<Attr<Disk>> {
        self.attributes.last(node).filter(|_| self.is_offline(status)).ok_or(status)
    }

    /// Returns whether what is known is to be used after this failure.
    pub(super) const fn is_offline(&self, status: Status) -> bool {
        self.options.offline && matches!(status, Status::Io | Status::Delay)
    }

    /// Notes attributes that came with an answer, unless it may be older than what is known;
    /// returns whether it did.
    pub(super) fn note(&self, node: &Handle, attr: Attr<Disk>, asked: Asked) -> bool {
        let is_true = self.is_true(node);
        if is_true && !self.attributes.is_late(node, asked) {
            self.carry(node, &attr);
        }
        self.attributes.note(node, attr, asked, (self.now(), is_true))
    }

    /// The number of the delegation of a file.
    fn grant_of(&self, node: &Handle) -> Option<DelegationNumber> {
        self.fs.open_files()?.file_grant(node)
    }

    /// Notes attributes that were asked for under a delegation of a file, or that came with it. The
    /// first that are noted under it show what others have changed before.
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

    /// A delegated file has another change attribute than when it was last looked at under the same
    /// delegation. Nobody else has changed it: this client has renamed it, or written to it with an
    /// answer that did not tell.
    fn carry(&self, node: &Handle, attr: &Attr<Disk>) {
        let known = self.attributes.last(node);
        let known = known.filter(|known| known.change != attr.change && known.size == attr.size);
        if let Some(known) = known {
            self.store.carry(&self.file(node), known.change, version(attr));
        }
    }

    /// Makes a change of an object and notes it. One that fails may have been made all the same.
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

    /// Notes a change of names of a directory that was made through this cache: its listings stay
    /// known if nothing came between.
    pub(super) fn note_own_names(
        &self,
        dir: &Handle,
        change: &Change<Disk>,
        asked: Asked,
        edit: Option<&ListingEdit>,
    ) {
        if let (Some(step), Some(edit)) = (self.note_own(dir, change, asked), edit) {
            self.listings.edit(dir, step, edit);
        }
    }

    /// The caller's rights among `wanted`, and the attributes of the file system below.
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
        // Once asked, all rights cost no more than one.
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

    /// Returns whether a caller may read a file's data as [`comity_vfs::Fs::read`] has it.
    pub(super) fn may_read(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        let wanted = Access::READ | Access::EXECUTE;
        let (granted, attr) = self.rights(cred, node, wanted)?;
        Ok(granted.intersects(wanted) || attr.uid == cred.uid)
    }
}
