//! Names: once found, they stay cached while no other client changes the directory.

use std::sync::Arc;

use comity_vfs::{
    Access, Change, Cred, Disk, Entry, Handle, Listing, Made, Name, Node, Result, SetAttr, Status,
    Target,
};

use super::Cache;
use crate::attribute_cache::{Asked, Moment, Step};
use crate::counters::count;
use crate::listing_cache::{KnownEntry, KnownListing, ListingEdit};
use crate::verdict_cache::CallerId;

/// Returns whether a rename may have changed nothing, as if both names were those of one file.
/// Servers whose change attributes have the grain of a clock give an equal one after a change, too,
/// and some give none.
fn may_be_without_effect(change: &Change<Disk>) -> bool {
    let both = change.before.zip(change.after);
    both.is_none_or(|(before, after)| before.change == after.change)
}

impl Cache {
    pub(super) fn find(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Entry<Disk>> {
        let known = self.find_known(cred, dir, name).or_else(|| {
            // A name from before is good if the attributes show that the directory is unchanged.
            self.look_into(dir).then(|| self.find_known(cred, dir, name)).flatten()
        });
        match known {
            Some(Some(handle)) => match self.attr(&handle) {
                Ok(attr) => {
                    let node = Node { handle, attr: self.shown(&handle, attr) };
                    Ok(Entry { node, dir: self.attributes.last(dir) })
                }
                Err(Status::Stale) => self.find_below(cred, dir, name),
                Err(status) => Err(status),
            },
            Some(None) => Err(Status::NoEnt),
            None => self.find_below(cred, dir, name),
        }
    }

    /// The cached object of a name, or `Some(None)` if the name is known to be missing, for a
    /// caller that may look names up.
    fn find_known(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Option<Option<Handle>> {
        let caller = CallerId::of(cred);
        self.attributes.get(dir, self.now(), self.is_true(dir))?;
        let generation = self.attributes.generation(dir);
        let granted = self.verdicts.get(caller, dir, Access::LOOKUP, generation)?;
        let found = self.names.get(caller, (dir, name), generation);
        let found = found.or_else(|| self.find_listed(caller, dir, name))?;
        if granted == Access::NONE {
            return None;
        }
        count(&self.counters.spared, 1);
        Some(found)
    }

    /// The object of a name by the listing of its directory, which has all names.
    fn find_listed(
        &self,
        caller: CallerId,
        dir: &Handle,
        name: Name<'_>,
    ) -> Option<Option<Handle>> {
        let listing = self.listings.get(caller, dir, self.attributes.moment(dir))?;
        match listing.entry(name.bytes()) {
            None => self.is_missing_unlisted(dir, name).then_some(None),
            // An entry of a listing of names has no object.
            Some(entry) => entry.node.map(Some),
        }
    }

    fn find_below(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        let (asked, moment) = (self.attributes.ask(), self.attributes.moment(dir));
        let found = self.fs.lookup(cred, dir, name);
        let node = match &found {
            Ok(entry) => Some(entry.node.handle),
            Err(Status::NoEnt) => None,
            Err(status) => return self.find_offline(cred, (dir, name), *status),
        };
        let mut is_told = false;
        if let Ok(entry) = &found {
            self.note(&entry.node.handle, entry.node.attr, asked);
            is_told = entry.dir.is_some_and(|attr| self.note(dir, attr, asked));
        }
        // A reply from before a change says nothing about the names after it.
        let now = self.attributes.moment(dir);
        let is_current = now.own == moment.own && (is_told || now.generation == moment.generation);
        if is_current && self.attributes.last(dir).is_some() {
            self.note_found(cred, (dir, name), node, moment);
        }
        let entry = found?;
        let attr = self.shown(&entry.node.handle, entry.node.attr);
        Ok(Entry { node: Node { attr, ..entry.node }, ..entry })
    }

    /// The last known object of a name, if the file system below cannot be reached. An unreachable
    /// server does not make a name missing.
    fn find_offline(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        status: Status,
    ) -> Result<Entry<Disk>> {
        let known = self.known_node(cred, (dir, name)).filter(|_| self.is_offline(status));
        let handle = known.ok_or(status)?;
        let attr = self.attributes.last(&handle).ok_or(status)?;
        let node = Node { handle, attr: self.shown(&handle, attr) };
        Ok(Entry { node, dir: self.attributes.last(dir) })
    }

    /// Notes a name that a caller was shown, which proves that the caller may look names up there.
    fn note_name(&self, cred: &Cred<Disk>, place: (&Handle, Name<'_>), node: Option<Handle>) {
        let (caller, generation) = (CallerId::of(cred), self.attributes.generation(place.0));
        let lookup = (Access::LOOKUP, Access::LOOKUP);
        self.verdicts.note(caller, place.0, lookup, generation);
        self.names.note(caller, place, generation, node);
    }

    /// Notes a name from a reply, unless a change through this cache came between.
    fn note_found(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        node: Option<Handle>,
        asked: Moment,
    ) {
        self.note_name(cred, place, node);
        // A change of the directory removes its names from the cache first, and raises the version
        // afterwards. So this name may be outdated if the version was raised since the request.
        if self.attributes.moment(place.0).own != asked.own {
            self.names.forget(place);
        }
    }

    /// Forgets a name and the attributes of its directory, because a change of it has failed but
    /// may still have been made.
    pub(super) fn doubt(&self, place: (&Handle, Name<'_>)) {
        self.names.forget(place);
        self.attributes.expire(place.0);
    }

    /// Makes an object, and notes its name.
    pub(super) fn make(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        work: impl FnOnce() -> Result<Made<Disk>>,
    ) -> Result<Made<Disk>> {
        let asked = self.attributes.ask();
        let made = work();
        self.names.forget((dir, name));
        let made = made.inspect_err(|_| self.doubt((dir, name)))?;
        let object = (made.value.attr.fileid, Some(made.value.handle));
        let edit = ListingEdit::added_by(CallerId::of(cred), name.bytes(), object);
        let step = self.note_own_names(dir, &made.change, asked, Some(&edit));
        self.note(&made.value.handle, made.value.attr, asked);
        self.note_made(cred, (dir, name), made.value.handle, step);
        let node = made.value;
        let attr = self.shown(&node.handle, node.attr);
        Ok(Made { value: Node { attr, ..node }, ..made })
    }

    /// Notes the name of an object that a caller has made, unless another change of the directory
    /// came between: `step` is the change by which it was made.
    pub(super) fn note_made(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        node: Handle,
        step: Option<Step>,
    ) {
        if let Some(step) = step {
            self.note_found(cred, place, Some(node), step.to);
        }
    }

    /// Makes a directory. It is empty, so nobody need ask the server for names in it while it is
    /// unchanged.
    pub(super) fn make_directory(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let made = self.make(cred, place, || self.fs.mkdir(cred, place.0, place.1, set))?;
        let (dir, attr, caller) = (made.value.handle, made.value.attr, CallerId::of(cred));
        let owner_may_search = attr.mode.bits() & 0o100 != 0;
        if attr.uid == cred.uid && owner_may_search {
            let (lookup, generation) = (Access::LOOKUP, self.attributes.generation(&dir));
            self.verdicts.note(caller, &dir, (lookup, lookup), generation);
            // A later change of the directory, by another thread, would have made it known anew.
            let moment = self.attributes.moment(&dir);
            let is_first = self.attributes.last(&dir).is_some_and(|it| it.change == attr.change);
            if moment.own == 0 && is_first {
                self.listings.note(caller, &dir, KnownListing { moment, entries: Vec::new() });
            }
        }
        Ok(made)
    }

    /// Removes a name, and notes that it is missing.
    pub(super) fn take_away(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        work: impl FnOnce() -> Result<Change<Disk>>,
    ) -> Result<Change<Disk>> {
        let asked = self.attributes.ask();
        let change = work();
        if let Some(node) = self.known_node(cred, (dir, name)) {
            // The object has one link less, or is gone.
            self.attributes.expire(&node);
        }
        self.names.forget((dir, name));
        let change = change.inspect_err(|_| self.doubt((dir, name)))?;
        let edit = ListingEdit::Remove(name.bytes().into());
        if let Some(step) = self.note_own_names(dir, &change, asked, Some(&edit)) {
            // Another client may have made the name again.
            self.note_found(cred, (dir, name), None, step.to);
        }
        Ok(change)
    }

    /// The cached object of a name, valid or not.
    pub(super) fn known_node(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
    ) -> Option<Handle> {
        let generation = self.attributes.generation(dir);
        self.names.get(CallerId::of(cred), (dir, name), generation)?
    }

    pub(super) fn note_renamed(
        &self,
        cred: &Cred<Disk>,
        (source, target): ((&Handle, Name<'_>), (&Handle, Name<'_>)),
        (from, to): &(Change<Disk>, Change<Disk>),
        asked: Asked,
    ) {
        let moved = self.known_node(cred, source);
        for node in [moved, self.known_node(cred, target)].into_iter().flatten() {
            self.attributes.expire(&node);
        }
        self.names.forget(source);
        self.names.forget(target);
        let [left, entered] = self.note_moved(cred, (source, target), (from, to), asked);
        // A reply may have cached it again meanwhile.
        self.names.forget(target);
        if may_be_without_effect(from) {
            return;
        }
        if let Some(step) = left {
            self.note_found(cred, source, None, step.to);
        }
        if let Some(step) = entered.filter(|_| moved.is_some()) {
            self.note_found(cred, target, moved, step.to);
        }
    }

    /// Notes the changes of the directories of a rename; returns that of the source and that of the
    /// target, unless other changes came between.
    fn note_moved(
        &self,
        cred: &Cred<Disk>,
        (source, target): ((&Handle, Name<'_>), (&Handle, Name<'_>)),
        (from, to): (&Change<Disk>, &Change<Disk>),
        asked: Asked,
    ) -> [Option<Step>; 2] {
        // Otherwise the listings are not of the new version, and are fetched again.
        let old_is_gone = !may_be_without_effect(from);
        let [old, new] = [source.1, target.1].map(|name| Arc::<[u8]>::from(name.bytes()));
        if source.0 == target.0 {
            let edit = if old == new { ListingEdit::Nothing } else { ListingEdit::Move(old, new) };
            let edit = Some(edit).filter(|_| old_is_gone);
            return [self.note_own_names(source.0, from, asked, edit.as_ref()); 2];
        }
        let moved = self.listings.entry(source.0, self.attributes.moment(source.0), &old);
        let edit = moved.map(|KnownEntry { fileid, node, .. }| {
            ListingEdit::added_by(CallerId::of(cred), new, (fileid, node))
        });
        let removal = Some(ListingEdit::Remove(old)).filter(|_| old_is_gone);
        let edit = edit.filter(|_| old_is_gone);
        [
            self.note_own_names(source.0, from, asked, removal.as_ref()),
            self.note_own_names(target.0, to, asked, edit.as_ref()),
        ]
    }

    /// Notes an entry of a listing, and returns it as callers see it.
    pub(super) fn note_listed<'a>(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        entry: &Listing<'a, Disk>,
        (asked, moment): (Asked, Moment),
    ) -> Listing<'a, Disk> {
        let Some(node) = entry.node else { return *entry };
        self.note(&node.handle, node.attr, asked);
        let is_current = self.attributes.moment(dir) == moment;
        if is_current && self.attributes.last(dir).is_some() {
            self.note_found(cred, (dir, entry.name), Some(node.handle), moment);
        }
        let attr = self.shown(&node.handle, node.attr);
        Listing { node: Some(Node { attr, ..node }), ..*entry }
    }

    pub(super) fn target(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
    ) -> Result<(Target, comity_vfs::Attr<Disk>)> {
        if let Some(attr) = self.true_attr(node)
            && let Some((_, target)) =
                self.links.get(node).filter(|(change, _)| *change == attr.change)
        {
            return Ok((target, attr));
        }
        let asked = self.attributes.ask();
        let (target, attr) = self.fs.readlink(cred, node)?;
        self.note(node, attr, asked);
        self.links.insert(*node, (attr.change, target.clone()));
        Ok((target, attr))
    }
}
