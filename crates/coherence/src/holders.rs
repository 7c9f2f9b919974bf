use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use comity_export::{ChangedPlace, DirectoryHolders, NameChange, Turns};
use comity_state::limits::{NOTICE_PAUSES_MAX, SILENT_PAUSES_MAX, WRITER_PAUSE};
use comity_state::{Client, ClientId, DirectoryNotice, Engine, NotedChange, Notified};
use comity_vfs::{FileKey, NamedObject, NoticedAttributes};

/// A caller whose changes conflict with the delegations of other clients.
pub trait Changer<'a>: Copy + Send + Sync + 'a {
    /// Returns the client of the caller, if it is known. Its own delegations do not conflict with
    /// its changes.
    fn client(&self) -> Option<&'a Client>;

    /// Returns the time of the operation.
    fn now(&self) -> Duration;

    /// Sends pending calls to clients and waits for `moment`; returns false if it cannot wait.
    fn pause(&self, moment: Duration) -> bool;
}

/// The clients with delegations of the directories of one change, which are notified of it.
pub(crate) struct Holders<'a, C> {
    caller: C,
    engine: &'a Engine,
    directories: (FileKey, Option<FileKey>),
    notified: Mutex<Vec<Notified>>,
}

impl<'a, C: Changer<'a>> Holders<'a, C> {
    pub(crate) fn new(
        caller: C,
        engine: &'a Engine,
        directories: (FileKey, Option<FileKey>),
    ) -> Self {
        Self { caller, engine, directories, notified: Mutex::default() }
    }

    fn note_name(&self, place: &ChangedPlace<'_>, change: NotedChange) {
        self.note(&place.directory, DirectoryNotice { change, after: place.after });
    }

    fn note(&self, directory: &FileKey, notice: DirectoryNotice) {
        let notified = self.engine.note_change(self.caller.now(), self.mine(), directory, notice);
        self.notified.lock().unwrap_or_else(PoisonError::into_inner).extend(notified);
    }

    fn mine(&self) -> Option<ClientId> {
        self.caller.client().map(Client::id)
    }

    fn note_move(
        &self,
        (from, to): (&ChangedPlace<'_>, &ChangedPlace<'_>),
        object: NamedObject,
        replaces: bool,
    ) {
        let name = to.name.into();
        if from.directory == to.directory {
            let change = NotedChange::Renamed { from: from.name.into(), name, object, replaces };
            return self.note_name(to, change);
        }
        self.note_name(from, NotedChange::Removed { name: from.name.into() });
        self.note_name(to, NotedChange::Added { name, object, replaces });
    }

    /// Recalls the delegations of a directory whose holders cannot be told all that a notification
    /// of this change needs.
    fn recall(&self, directory: &FileKey) {
        let notified = self.engine.recall_notified(self.caller.now(), self.mine(), directory);
        self.notified.lock().unwrap_or_else(PoisonError::into_inner).extend(notified);
    }
}

impl<'a, C: Changer<'a>> DirectoryHolders for Holders<'a, C> {
    fn turns(&self) -> Turns<'_> {
        self.engine.turns((&self.directories.0, self.directories.1.as_ref()))
    }

    fn tell(&self, change: &NameChange<'_>) {
        match change {
            NameChange::Added { place, object } => {
                let (name, object) = (place.name.into(), *object);
                self.note_name(place, NotedChange::Added { name, object, replaces: false });
            }
            NameChange::Removed(place) => {
                self.note_name(place, NotedChange::Removed { name: place.name.into() });
            }
            NameChange::Moved { from, to, object: Some(object), replaces } => {
                self.note_move((from, to), *object, *replaces);
            }
            NameChange::Moved { from, to, object: None, .. } => {
                self.recall(&from.directory);
                self.recall(&to.directory);
            }
        }
    }

    fn tell_attributes(&self, directory: &FileKey, after: Option<NoticedAttributes>) {
        match after {
            Some(after) => {
                let (change, after) = (NotedChange::Attributes, Some(after));
                self.note(directory, DirectoryNotice { change, after });
            }
            None => self.recall(directory),
        }
    }

    fn wait(&self) {
        let notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = || notified.iter().all(|notified| self.engine.is_acknowledged(notified));
        let mut pauses = 0;
        while !is_known() && pauses < NOTICE_PAUSES_MAX + SILENT_PAUSES_MAX {
            let can_wait = self.caller.pause(WRITER_PAUSE);
            pauses += 1;
            if pauses == NOTICE_PAUSES_MAX || !can_wait {
                let now = self.caller.now();
                notified.iter().for_each(|notified| self.engine.recall_silent(now, notified));
            }
            if !can_wait {
                break;
            }
        }
    }
}
