//! Clearances for changes of directories, of their names and attributes. Delegations of the
//! directories by all clients but the asker are recalled first; holders that asked for
//! notifications are notified of changes of names instead.

use std::sync::Arc;

use comity_export::{ChangeUnderWay, DirectoryClearance, Node, View};
use comity_state::limits::{WRITER_PAUSE, WRITER_PAUSES_MAX};
use comity_state::{DelegationKind, Engine};
use comity_vfs::{Result, Status};

use crate::act::Act;
use crate::changes::changes_by;
use crate::holders::{Changer, Holders};

/// A caller that changes directories. Its own delegations do not conflict with its changes.
///
/// All functions fail with [`comity_vfs::Status::Delay`] while a delegation is being recalled, and
/// with another [`comity_vfs::Status`] if the caller may not do this; then nothing was recalled.
pub trait ChangesDirectories<'a>: Changer<'a> {
    /// Returns the state of all clients; `None` if the server has no such state.
    fn engine(&self) -> Option<&'a Engine>;

    /// Clears an act on an object against the state of clients.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_object(&self, object: (&View<'_>, &Node), act: Act<'_>) -> Result<()>;

    /// Clears an act on the object of a name. If there is no such object, or the caller may not see
    /// it, the operation itself fails later.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_object_named(&self, view: &View<'_>, name: (&Node, &[u8]), act: Act<'_>)
    -> Result<()>;

    /// Clears a change of names in a directory. Waits a short time for holders that answer at once,
    /// because a client that gets DELAY repeats its call much later.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_directory(&self, directory: (&View<'_>, &Node), act: Act<'_>) -> Result<()> {
        let mut cleared = self.clear_object(directory, act);
        for _ in 0..WRITER_PAUSES_MAX {
            if cleared != Err(Status::Delay) || !self.pause(WRITER_PAUSE) {
                break;
            }
            cleared = self.clear_object(directory, act);
        }
        cleared
    }

    /// Clears the creation of a name in a directory. Delegations of the directory are recalled even
    /// if the name exists: it may be removed before the operation looks it up.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_new_name(&self, (view, dir): (&View<'_>, &Node)) -> Result<DirectoryClearance<'a>> {
        let cleared = self.begin(view, dir, None);
        self.clear_directory((view, dir), Act::AddName)?;
        Ok(cleared)
    }

    /// Clears the removal of a name from a directory, and of its object.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_removal(
        &self,
        view: &View<'_>,
        (dir, name): (&Node, &[u8]),
    ) -> Result<DirectoryClearance<'a>> {
        let cleared = self.begin(view, dir, None);
        self.clear_object_named(view, (dir, name), Act::Unlink(dir))?;
        self.clear_directory((view, dir), Act::RemoveName)?;
        Ok(cleared)
    }

    /// Clears a rename: the removal of a name from one directory, and its creation in another or
    /// the same, where it may replace an object.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_rename(
        &self,
        view: &View<'_>,
        from: (&Node, &[u8]),
        to: (&Node, &[u8]),
    ) -> Result<DirectoryClearance<'a>> {
        let cleared = self.begin(view, from.0, Some(to.0).filter(|dir| *dir != from.0));
        self.clear_object_named(view, from, Act::Unlink(from.0))?;
        self.clear_object_named(view, to, Act::Unlink(to.0))?;
        if from.0 == to.0 {
            return self.clear_directory((view, from.0), Act::Rename).map(|()| cleared);
        }
        // Both recalls begin before either of them is waited for.
        let entered = self.clear_object((view, to.0), Act::AddName);
        self.clear_directory((view, from.0), Act::RemoveName)?;
        let entered = match entered {
            Err(Status::Delay) => self.clear_directory((view, to.0), Act::AddName),
            entered => entered,
        };
        entered.map(|()| cleared)
    }

    /// Clears the creation of a link to an object.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_link(
        &self,
        (view, node): (&View<'_>, &Node),
        dir: &Node,
    ) -> Result<DirectoryClearance<'a>> {
        let cleared = self.begin(view, dir, None);
        self.clear_object((view, node), Act::Link(dir))?;
        self.clear_directory((view, dir), Act::AddName)?;
        Ok(cleared)
    }

    /// Clears a change of attributes of an object, which may be a directory. Its holders are
    /// notified instead of recalled, if they can be told all that changes. Holders of a directory
    /// that answer at once are waited for, as for a change of names.
    ///
    /// # Errors
    /// As all functions here.
    fn clear_attributes(
        &self,
        (view, node): (&View<'_>, &Node),
        act: Act<'_>,
    ) -> Result<DirectoryClearance<'a>> {
        let (cleared, key) = (self.count(view, node, None), view.key(node));
        let is_directory =
            |engine: &&Engine| engine.delegated(&key) == Some(DelegationKind::Directory);
        let engine = self.engine().filter(|engine| engine.has_delegations()).filter(is_directory);
        // Only a directory has somebody to tell. Changes of files do not take turns.
        let Some(engine) = engine else {
            self.clear_object((view, node), act)?;
            return Ok(cleared);
        };
        self.clear_directory((view, node), act)?;
        Ok(cleared.told_to(Arc::new(Holders::new(*self, engine, (key, None)))))
    }

    /// Counts a change of names as under way, and prepares what is told of it. This must come
    /// before delegations are looked at.
    fn begin(
        &self,
        view: &View<'_>,
        first: &Node,
        second: Option<&Node>,
    ) -> DirectoryClearance<'a> {
        let cleared = self.count(view, first, second);
        let Some(engine) = self.engine().filter(|engine| engine.has_delegations()) else {
            // No delegation of these directories is granted while the change is under way.
            return cleared;
        };
        let directories = (view.key(first), second.map(|dir| view.key(dir)));
        cleared.told_to(Arc::new(Holders::new(*self, engine, directories)))
    }

    /// Counts a change as under way. This must come before delegations are looked at.
    fn count(
        &self,
        view: &View<'_>,
        first: &Node,
        second: Option<&Node>,
    ) -> DirectoryClearance<'a> {
        let Some(engine) = self.engine() else { return DirectoryClearance::given() };
        let begin = |dir| ChangeUnderWay::begin(engine.changes_under_way(&view.key(dir)));
        DirectoryClearance::during(begin(first), second.map(begin))
            .noted_in(changes_by(engine, self.client()))
    }
}
