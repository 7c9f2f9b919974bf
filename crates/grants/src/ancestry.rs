//! Finds the directories above an object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_vfs::{Cred, Disk, FileKey, Fs, Gid, Handle, Name, Result, Status, Uid};
use quick_cache::sync::Cache;

use crate::limits::{DECISION_MILLISECONDS, DEPTH_MAX, DIRECTORIES_PER_FILE_MAX, PLACES_MAX};
use crate::places::{Above, ObjectPlaces};
use crate::{Moment, ObjectId};

/// The places of objects. For a directory the file system knows its parent. For a file it may not;
/// so the names by which clients looked it up are remembered, and checked again before they count.
pub struct Ancestry {
    places: Cache<FileKey, Arc<ObjectPlaces>>,
    /// Number of moves between directories. Places found before the last move are not used.
    moves: AtomicU64,
}

/// The state at the begin of a look-up: the place found by it is valid for a second from then,
/// unless an object is moved meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Glance {
    pub(crate) moves: u64,
    pub(crate) now: Moment,
}

/// The directories above an object.
#[derive(Debug)]
pub struct Within {
    /// The ids of the directories.
    pub directories: Vec<ObjectId>,
    /// The moment until which they are valid.
    pub until: Moment,
}

/// A file system, and a function that returns the keys of its objects.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    /// The file system.
    pub fs: &'a dyn Fs,
    /// Returns the key of an object of it.
    pub key: &'a dyn Fn(&Handle) -> FileKey,
}

impl Default for Ancestry {
    fn default() -> Self {
        Self { places: Cache::new(PLACES_MAX), moves: AtomicU64::new(0) }
    }
}

impl Ancestry {
    /// The number of moves so far. A decision made at another number must be made again.
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    /// Counts a move between two directories. Must be called before and after it is made.
    pub fn moved(&self) {
        self.moves.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the state at the begin of a look-up.
    pub fn glance(&self, now: Moment) -> Glance {
        Glance { moves: self.moves(), now }
    }

    /// Remembers a name by which a client looked up an object.
    pub fn met(&self, file: &FileKey, dir: &Handle, name: &[u8]) {
        self.places_with(file, dir, name);
    }

    /// Remembers a name by which a client looked up a file with one link; `before` is the state
    /// when the look-up began. If no other name of the file is known, its place is known without
    /// asking the file system.
    pub fn met_single(&self, before: Glance, file: &FileKey, (dir, name): (&Handle, &[u8])) {
        let Glance { moves, now } = before;
        let places = self.places_with(file, dir, name);
        if places.count() == 1 && !places.has_above(now, moves) {
            let until = now.after_milliseconds(DECISION_MILLISECONDS);
            places.set_above(Above::one(*dir, until, moves));
        }
    }

    /// Adds a name by which clients looked up an object; returns all that are known.
    fn places_with(&self, file: &FileKey, dir: &Handle, name: &[u8]) -> Arc<ObjectPlaces> {
        let known = self.places.get(file);
        if let Some(known) = known.as_ref().filter(|known| known.has(dir, name)) {
            return Arc::clone(known);
        }
        let places = Arc::new(ObjectPlaces::with(dir, name, known.as_deref()));
        self.places.insert(*file, Arc::clone(&places));
        places
    }

    /// The only directory that contains an object, and until when that is valid. `None` for the
    /// root of the file system, and for an object with names in several directories or in none.
    ///
    /// # Errors
    /// As for [`Ancestry::within`].
    pub fn only_directory(
        &self,
        tree: Tree<'_>,
        object: &Handle,
        now: Moment,
    ) -> Result<Option<(Handle, Moment)>> {
        if *object == tree.fs.root() {
            return Ok(None);
        }
        let above = self.directories(tree, object, now)?;
        let Some(dir) = above.only() else { return Ok(None) };
        Ok((dir != object).then_some((*dir, above.until)))
    }

    /// The ids of all directories above an object up to the root of its file system; none if the
    /// object is not below the root or its place is unknown.
    ///
    /// # Errors
    /// [`Status::Stale`] if the object no longer exists; other errors of the file system.
    pub fn within(&self, tree: Tree<'_>, object: &Handle, now: Moment) -> Result<Within> {
        let root = tree.fs.root();
        let mut found = Within { directories: Vec::new(), until: Moment::NEVER };
        if *object == root {
            return Ok(found);
        }
        let above = self.directories(tree, object, now)?;
        found.until = above.until;
        for dir in above.directories() {
            if let Some(chain) = self.chain(tree, dir, &mut found.until, now)? {
                found.directories.extend(chain.into_iter().map(ObjectId));
            }
        }
        Ok(found)
    }

    /// A directory and all directories above it; `None` if they do not lead to the root. Lowers
    /// `until` to the moment until which all of them are valid.
    fn chain(
        &self,
        tree: Tree<'_>,
        dir: &Handle,
        until: &mut Moment,
        now: Moment,
    ) -> Result<Option<Vec<Handle>>> {
        let (root, mut chain) = (tree.fs.root(), vec![*dir]);
        let mut here = *dir;
        while here != root {
            if chain.len() >= DEPTH_MAX {
                return Ok(None);
            }
            let above = match self.directories(tree, &here, now) {
                // The directory was moved out of the tree.
                Err(Status::Stale) => return Ok(None),
                above => above?,
            };
            *until = above.until.min(*until);
            let parent = above.directories().next().filter(|parent| **parent != here);
            let Some(parent) = parent else { return Ok(None) };
            here = *parent;
            chain.push(here);
        }
        Ok(Some(chain))
    }

    /// The directories that contain an object.
    fn directories(&self, tree: Tree<'_>, object: &Handle, now: Moment) -> Result<Above> {
        let (file, moves) = ((tree.key)(object), self.moves());
        let known = self.places.get(&file);
        if let Some(above) = known.as_ref().and_then(|known| known.above(now, moves)) {
            return Ok(above);
        }
        let directories = match tree.fs.parent(&server(), object) {
            Ok(parent) => vec![parent.handle],
            Err(Status::NotDir) => directories_of(tree.fs, &file, known.as_deref())?,
            Err(why) => return Err(why),
        };
        let above = Above::new(&directories, now.after_milliseconds(DECISION_MILLISECONDS), moves);
        self.keep(&file, known, &above)?;
        Ok(above)
    }

    /// Remembers the directories that contain an object. If another thread has added a name
    /// meanwhile, its entry is another one, and what was found without that name does not count.
    fn keep(&self, file: &FileKey, known: Option<Arc<ObjectPlaces>>, above: &Above) -> Result<()> {
        match known {
            Some(known) => known.set_above(above.clone()),
            None => {
                let place = || Ok(Arc::new(ObjectPlaces::above_only(above.clone())));
                self.places.get_or_insert_with(file, place)?;
            }
        }
        Ok(())
    }
}

/// The directories in which a file has a name now, as far as known.
fn directories_of(
    fs: &dyn Fs,
    file: &FileKey,
    known: Option<&ObjectPlaces>,
) -> Result<Vec<Handle>> {
    let mut found = fs.directories_of(&file.handle)?;
    found.truncate(DIRECTORIES_PER_FILE_MAX);
    for (dir, name) in known.into_iter().flat_map(ObjectPlaces::names) {
        if !found.contains(dir) && is_there(fs, (dir, name), &file.handle) {
            found.push(*dir);
        }
    }
    Ok(found)
}

/// Returns whether an object still has a name.
fn is_there(fs: &dyn Fs, (dir, name): (&Handle, &[u8]), object: &Handle) -> bool {
    let entry = Name::new(name).and_then(|name| fs.lookup(&server(), dir, name));
    entry.is_ok_and(|entry| entry.node.handle == *object)
}

/// The credential of root, from whom nothing is hidden.
fn server() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}
