//! Finds the directories above an object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_vfs::{Cred, Disk, FileKey, Fs, Gid, Handle, Name, Result, Status, Uid};
use quick_cache::sync::Cache;

use crate::limits::{DECISION_MILLISECONDS, DEPTH_MAX, DIRECTORIES_PER_FILE_MAX, PLACES_MAX};
use crate::{Moment, ObjectId};

/// The places of objects. For a directory the file system knows its parent. For a file it may not;
/// so the names by which clients looked it up are remembered, and checked again before they count.
pub struct Ancestry {
    above: Cache<FileKey, Above>,
    met: Cache<FileKey, Arc<[Place]>>,
    /// Number of moves between directories. Places found before the last move are not used.
    moves: AtomicU64,
}

/// The directories that contain an object, and until when that is valid.
#[derive(Clone)]
struct Above {
    directories: Arc<[Handle]>,
    until: Moment,
    moves: u64,
}

/// The state at the begin of a look-up: the place found by it is valid for a second from then,
/// unless an object is moved meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Glance {
    moves: u64,
    now: Moment,
}

/// The directories above an object.
#[derive(Debug)]
pub struct Within {
    /// The ids of the directories.
    pub directories: Vec<ObjectId>,
    /// The moment until which they are valid.
    pub until: Moment,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    dir: Handle,
    name: Box<[u8]>,
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
        let (above, met) = (Cache::new(PLACES_MAX), Cache::new(PLACES_MAX));
        Self { above, met, moves: AtomicU64::new(0) }
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
        let holds = |above: &Above| now < above.until && above.moves == moves;
        if self.places_with(file, dir, name) == 1
            && !self.above.get(file).is_some_and(|it| holds(&it))
        {
            let until = now.after_milliseconds(DECISION_MILLISECONDS);
            self.above.insert(*file, Above { directories: [*dir].into(), until, moves });
        }
    }

    /// Adds a name by which clients looked up an object; returns how many are known.
    fn places_with(&self, file: &FileKey, dir: &Handle, name: &[u8]) -> usize {
        let known = self.met.get(file).unwrap_or_default();
        let is_place = |place: &Place| place.dir == *dir && *place.name == *name;
        if known.iter().any(is_place) {
            return known.len();
        }
        let place = Place { dir: *dir, name: name.into() };
        let others = known.iter().take(DIRECTORIES_PER_FILE_MAX - 1).cloned();
        let places: Arc<[Place]> = std::iter::once(place).chain(others).collect();
        let count = places.len();
        self.met.insert(*file, places);
        self.above.remove(file);
        count
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
        let [dir] = &above.directories[..] else { return Ok(None) };
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
        for dir in above.directories.iter() {
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
            let parent = above.directories.first().filter(|parent| **parent != here);
            let Some(parent) = parent else { return Ok(None) };
            here = *parent;
            chain.push(here);
        }
        Ok(Some(chain))
    }

    /// The directories that contain an object.
    fn directories(&self, tree: Tree<'_>, object: &Handle, now: Moment) -> Result<Above> {
        let (file, moves) = ((tree.key)(object), self.moves());
        if let Some(above) = self.above.get(&file)
            && now < above.until
            && above.moves == moves
        {
            return Ok(above);
        }
        let directories: Arc<[Handle]> = match tree.fs.parent(&server(), object) {
            Ok(parent) => [parent.handle].into(),
            Err(Status::NotDir) => self.places_of(tree.fs, &file)?.into(),
            Err(why) => return Err(why),
        };
        let above =
            Above { directories, until: now.after_milliseconds(DECISION_MILLISECONDS), moves };
        self.above.insert(file, above.clone());
        Ok(above)
    }

    /// The directories in which a file has a name now, as far as known.
    fn places_of(&self, fs: &dyn Fs, file: &FileKey) -> Result<Vec<Handle>> {
        let mut found = fs.directories_of(&file.handle)?;
        found.truncate(DIRECTORIES_PER_FILE_MAX);
        for place in self.met.get(file).iter().flat_map(|places| places.iter()) {
            if !found.contains(&place.dir) && is_there(fs, place, &file.handle) {
                found.push(place.dir);
            }
        }
        Ok(found)
    }
}

/// Returns whether an object still has a name.
fn is_there(fs: &dyn Fs, place: &Place, object: &Handle) -> bool {
    let entry = Name::new(&place.name).and_then(|name| fs.lookup(&server(), &place.dir, name));
    entry.is_ok_and(|entry| entry.node.handle == *object)
}

/// The credential of root, from whom nothing is hidden.
fn server() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}
