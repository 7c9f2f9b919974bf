//! Notifications of changes by other clients in delegated directories: the cached state of the
//! directory is updated instead of dropped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_vfs::{
    Attr, DelegationNumber, DirectoryNotice, Disk, Handle, Name, NoticedChange, NoticedObject,
    OpenFiles,
};

use super::Cache;
use crate::attribute_cache::Asked;
use crate::listing_cache::ListingEdit;

/// Orders notifications and grants.
#[derive(Debug, Default)]
pub(super) struct NoticeTurn {
    turn: Mutex<()>,
    /// Number of notifications that arrived before their delegation was noted here.
    early: AtomicU64,
}

impl NoticeTurn {
    pub(super) fn early(&self) -> u64 {
        self.early.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// Applies all notifications so far, in order. Must be called before cached state of a
    /// delegated directory is used: this client has acknowledged the notifications, so the server
    /// counts them as applied.
    pub(super) fn apply_notices(&self, files: &dyn OpenFiles) {
        let _turn = self.notices.lock();
        self.drain(files);
    }

    fn drain(&self, files: &dyn OpenFiles) {
        while let Some(notice) = files.poll_notice() {
            self.apply(&notice);
        }
    }

    /// Notes the attributes of a directory that came with its delegation. Changes notified
    /// meanwhile may have been made after the attributes were read: then the attributes are fetched
    /// again.
    pub(super) fn note_grant(
        &self,
        (dir, grant): (&Handle, DelegationNumber),
        attr: Attr<Disk>,
        (asked, early): (Asked, u64),
        files: &dyn OpenFiles,
    ) {
        let _turn = self.notices.lock();
        self.drain(files);
        self.attributes.note_granted(dir, attr, asked, (self.now(), grant));
        if self.notices.early() != early {
            self.attributes.disown(dir);
            self.attributes.expire(dir);
        }
    }

    fn apply(&self, notice: &DirectoryNotice) {
        let dir = &notice.dir;
        if self.attributes.grant(dir) != Some(notice.grant) {
            self.notices.early.fetch_add(1, Ordering::Relaxed);
            self.attributes.disown(dir);
            self.attributes.expire(dir);
            return;
        }
        let is_overtaken =
            self.attributes.is_overtaken(dir, notice.after.map(|after| after.change));
        let step = self.attributes.note_told(dir, notice.after, self.now());
        if is_overtaken {
            self.attributes.disown(dir);
            return;
        }
        let edit = match &notice.change {
            NoticedChange::Added { name, object } => self.added(dir, name, object),
            NoticedChange::Removed { name } => self.removed(dir, name),
            NoticedChange::Attributes => Some(ListingEdit::Nothing),
            NoticedChange::Renamed { from, name, object } => {
                self.renamed(dir, (from, name), object)
            }
        };
        // Without an edit the cached listing belongs to an older version and is not used again.
        if let (Some(step), Some(edit)) = (step, edit) {
            self.listings.edit(dir, step, &edit);
        }
    }

    fn added(&self, dir: &Handle, name: &[u8], object: &NoticedObject) -> Option<ListingEdit> {
        let known = Name::new(name).ok()?;
        match object.node {
            None => self.names.forget((dir, known)),
            node => self.names.replace((dir, known), self.attributes.generation(dir), node),
        }
        if let Some(node) = object.node {
            // The object may have another link now.
            self.attributes.expire(&node);
        }
        let (name, fileid) = (name.into(), object.fileid?);
        Some(ListingEdit::Add { name, fileid, node: object.node, caller: None })
    }

    fn removed(&self, dir: &Handle, name: &[u8]) -> Option<ListingEdit> {
        let known = Name::new(name).ok()?;
        self.names.replace((dir, known), self.attributes.generation(dir), None);
        Some(ListingEdit::Remove(name.into()))
    }

    fn renamed(
        &self,
        dir: &Handle,
        (from, name): (&[u8], &[u8]),
        object: &NoticedObject,
    ) -> Option<ListingEdit> {
        self.names.replace((dir, Name::new(from).ok()?), self.attributes.generation(dir), None);
        match self.added(dir, name, object) {
            Some(ListingEdit::Add { name, fileid, node, .. }) => {
                Some(ListingEdit::Replace { from: from.into(), name, fileid, node })
            }
            edit => edit,
        }
    }
}
