//! Notifications of changed attributes of objects in delegated directories (RFC 8881, 20.4).

use std::time::Duration;

use comity_vfs::ChangedObjects;

use crate::directories::NotedChange;
use crate::file::{Delegated, File, FileState, Holder, TooMany};
use crate::{Client, ClientId, DelegationKind, Engine, FileKey};

impl Engine {
    /// Returns the objects that were changed. They are noted while a client wants to be notified of
    /// changed attributes of the objects in a directory.
    #[must_use]
    pub const fn changed_objects(&self) -> &ChangedObjects {
        &self.changed
    }

    /// Notes that a client sees the attributes of an object by its name in a directory. If it holds
    /// the directory, and wants that, it is notified when others change them. `since` is a moment
    /// of [`Engine::changed_objects`] before the name was looked up and the attributes were read.
    pub fn watch_child(
        &self,
        now: Duration,
        client: &Client,
        (directory, name): (&FileKey, &[u8]),
        (child, since): (&FileKey, u64),
    ) {
        let Some(file) = self.files.get(directory) else { return };
        let Some(holder) = watcher(&file, directory, client) else { return };
        let known = self.children.object(holder, name);
        if known.is_some_and(|known| known != *child)
            && self.changed.has_changed_since(directory, since)
        {
            // The name was looked up before it got the object that is known.
            return;
        }
        let added = self.children.add(holder, name, *child);
        if self.changed.has_changed_since(child, since) {
            self.children.mark(now, holder, name);
        }
        // The holder of a write delegation changes the file without the server.
        if added == Err(TooMany) || self.is_written_by_others(child, client.id) {
            self.recall_of(now, &file, &mut file.state(), holder);
        }
    }

    /// Takes the objects that were changed, and queues the notifications that are due. The shell
    /// calls it before it takes messages.
    pub fn notify_children(&self, now: Duration) {
        if !self.changed.is_empty() {
            self.take_changes(now);
        }
        if self.changed.are_watched() {
            for (holder, directory) in self.children.due(now) {
                if let Some(file) = self.files.get(&directory) {
                    self.send_notices(Some(now), &file, &mut file.state(), holder);
                }
            }
        }
    }

    fn take_changes(&self, now: Duration) {
        let Some(changes) = self.changed.take() else { return self.recall_watchers(now) };
        for change in changes {
            self.children.change(now, &change.object, change.client.map(ClientId));
        }
    }

    /// Recalls all directories whose holders cannot be told which objects have changed.
    fn recall_watchers(&self, now: Duration) {
        for (holder, directory) in self.children.holders() {
            if let Some(file) = self.files.get(&directory) {
                self.recall_of(now, &file, &mut file.state(), holder);
            }
        }
    }

    fn is_written_by_others(&self, file: &FileKey, client: ClientId) -> bool {
        let look = |file: &File| {
            let on_file = file.state();
            let mut held = on_file.delegations.iter();
            held.any(|(holder, it)| it.kind == DelegationKind::Write && holder.client != client)
        };
        self.files.look(file, look).unwrap_or(false)
    }

    /// Returns whether another client is notified when attributes of a file change.
    pub(super) fn is_watched_by_others(&self, file: &File, client: ClientId) -> bool {
        self.changed.are_watched() && self.children.is_known_to_others(&file.key, client)
    }

    /// Notes for all holders which objects they know after a change of names. Returns those that
    /// would know too many.
    pub(super) fn note_names(&self, on_file: &FileState, change: &NotedChange) -> Vec<Holder> {
        if !self.changed.are_watched() {
            return Vec::new();
        }
        let watchers = on_file.delegations.iter().filter(|(_, it)| is_watcher(it));
        let holders = watchers.map(|(holder, _)| holder);
        holders.filter(|holder| self.note_name(*holder, change) == Err(TooMany)).collect()
    }

    fn note_name(&self, holder: Holder, change: &NotedChange) -> Result<(), TooMany> {
        match change {
            NotedChange::Added { name, object, .. } => self.children.add(holder, name, object.key),
            NotedChange::Removed { name } => {
                self.children.remove(holder, name);
                Ok(())
            }
            NotedChange::Renamed { from, name, object, .. } => {
                self.children.remove(holder, from);
                self.children.add(holder, name, object.key)
            }
            NotedChange::Attributes | NotedChange::Child { .. } => Ok(()),
        }
    }

    /// Begins to note the children of a holder that wants to be notified of their attributes.
    pub(super) fn watch_children(&self, file: &File, (holder, held): (Holder, &Delegated)) {
        if is_watcher(held) {
            let delay = held.notices.as_ref().map(|notices| notices.wishes().child_delay);
            self.children.begin(holder, file.key, delay.unwrap_or_default());
            self.changed.watch();
        }
    }
}

/// Returns the delegation by which a client is notified of the attributes of children.
fn watcher(file: &File, directory: &FileKey, client: &Client) -> Option<Holder> {
    let client = file.covered(directory, Some(client.id))?;
    let mut on_file = file.state();
    let holder = on_file.delegations.of(client)?;
    on_file.delegations.get_mut(holder).filter(|held| is_watcher(held)).map(|_| holder)
}

/// Returns whether the holder is notified of attributes of children.
pub(crate) fn is_watcher(held: &Delegated) -> bool {
    held.notices.as_ref().is_some_and(|notices| notices.wishes().children != 0)
}
