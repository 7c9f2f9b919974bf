//! The objects that the kernel knows, by inode number.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_vfs::{Attr, Disk, Handle};
use hashbrown::HashTable;
use rustix::io::Errno;

use crate::limits::{NODES_FORGOTTEN_AT_ONCE, NODES_IN_USE_MAX, NODES_MAX};

/// The kernel's number of the root directory.
pub(crate) const ROOT: u64 = 1;

/// Numbers from here on are given to objects whose fileid is [`ROOT`], 0, or used by another
/// object.
const FIRST_OWN: u64 = 1 << 63;

/// A name in a directory, with the directory's number.
pub(crate) type EntryPlace = (u64, Box<[u8]>);

/// The number of each object that the kernel knows, and its lookup count.
///
/// The number is the object's fileid if possible: `fuser` shows it to programs as the inode number,
/// which should stay the same over mounts.
#[derive(Debug)]
pub(crate) struct Inodes {
    table: Mutex<InodeTable>,
}

#[derive(Debug)]
struct InodeTable {
    by_number: HashMap<u64, Inode>,
    by_handle: HashTable<u64>,
    hasher: RandomState,
    /// Numbers in the order in which the kernel will be asked to forget them.
    oldest: VecDeque<u64>,
    own_next: u64,
    max: usize,
}

#[derive(Debug)]
struct Inode {
    handle: Handle,
    /// The kernel's lookup count: lookups minus forgets.
    lookups: u64,
    /// Number of opens.
    opens: u32,
    /// The change attribute of the data in the kernel's page cache, if the kernel may have any.
    pages: Option<u64>,
    /// A name by which it was looked up.
    place: Option<EntryPlace>,
}

/// The outcome of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LookedUp {
    /// The object's number.
    pub(crate) number: u64,
    /// Names that the kernel should be asked to forget.
    pub(crate) too_many: Vec<EntryPlace>,
}

impl Inodes {
    /// Makes a table with the root directory only.
    pub(crate) fn new(root: Handle) -> Self {
        Self::bounded(root, NODES_MAX)
    }

    fn bounded(root: Handle, max: usize) -> Self {
        let mut table = InodeTable {
            by_number: HashMap::new(),
            by_handle: HashTable::new(),
            hasher: RandomState::new(),
            oldest: VecDeque::new(),
            own_next: FIRST_OWN,
            max,
        };
        table.insert(ROOT, Inode { handle: root, lookups: 1, opens: 0, pages: None, place: None });
        Self { table: Mutex::new(table) }
    }

    /// Counts a lookup of an object.
    ///
    /// # Errors
    /// [`Errno::NFILE`] if the kernel uses as many objects as allowed.
    pub(crate) fn look_up(
        &self,
        handle: &Handle,
        attr: &Attr<Disk>,
        place: Option<EntryPlace>,
    ) -> Result<LookedUp, Errno> {
        let mut table = self.lock();
        let number = match table.find(handle) {
            Some(number) => number,
            None => table.add(handle, attr.fileid)?,
        };
        if let Some(inode) = table.by_number.get_mut(&number) {
            inode.lookups += 1;
            inode.place = place.or(inode.place.take());
        }
        Ok(LookedUp { number, too_many: table.too_many() })
    }

    /// Reduces the lookup count of an object; removes the object at 0.
    pub(crate) fn forget(&self, number: u64, times: u64) {
        let mut table = self.lock();
        let Some(inode) = table.by_number.get_mut(&number) else { return };
        inode.lookups = inode.lookups.saturating_sub(times);
        if inode.lookups == 0 && number != ROOT {
            table.remove(number);
        }
    }

    /// Returns the handle of an object.
    ///
    /// # Errors
    /// [`Errno::STALE`] for an unknown number.
    pub(crate) fn handle(&self, number: u64) -> Result<Handle, Errno> {
        self.lock().by_number.get(&number).map(|inode| inode.handle).ok_or(Errno::STALE)
    }

    /// Returns the directory and the name by which an object was looked up last.
    pub(crate) fn place(&self, number: u64) -> Option<(Handle, Box<[u8]>)> {
        let table = self.lock();
        let (dir, name) = table.by_number.get(&number)?.place.as_ref()?;
        Some((table.by_number.get(dir)?.handle, name.clone()))
    }

    /// Returns the number of an object, if the kernel knows it.
    pub(crate) fn number(&self, handle: &Handle) -> Option<u64> {
        self.lock().find(handle)
    }

    /// Counts an open of an object. Returns whether the kernel's cached pages are still valid,
    /// because they belong to this change attribute. `None` means that the object is delegated and
    /// has not changed.
    pub(crate) fn open(&self, number: u64, change: Option<u64>) -> bool {
        let mut table = self.lock();
        let Some(inode) = table.by_number.get_mut(&number) else { return false };
        inode.opens += 1;
        let fresh = inode.pages.is_some() && (change.is_none() || inode.pages == change);
        inode.pages = change.or(inode.pages);
        fresh
    }

    /// Counts the end of an open; returns how many are left.
    pub(crate) fn release(&self, number: u64) -> u32 {
        let mut table = self.lock();
        let Some(inode) = table.by_number.get_mut(&number) else { return 0 };
        inode.opens = inode.opens.saturating_sub(1);
        inode.opens
    }

    /// Number of opens of an object.
    pub(crate) fn opens(&self, handle: &Handle) -> u32 {
        let table = self.lock();
        let inode = table.find(handle).and_then(|number| table.by_number.get(&number));
        inode.map_or(0, |inode| inode.opens)
    }

    /// Notes the change attribute of fetched attributes. Returns whether another client has changed
    /// the object since its pages were read, so that the kernel must drop them.
    pub(crate) fn observe(&self, number: u64, change: u64) -> bool {
        let mut table = self.lock();
        let Some(inode) = table.by_number.get_mut(&number) else { return false };
        let stale = inode.pages.is_some_and(|pages| pages != change);
        if stale {
            // An open before the kernel has dropped the pages must not keep them.
            inode.pages = None;
        }
        stale
    }

    /// Notes a change that was made through this mount. Pages of the kernel that were valid before
    /// it are valid after it. If another change may have come between, they are invalid.
    pub(crate) fn changed(&self, number: u64, before: Option<u64>, after: Option<u64>) {
        let mut table = self.lock();
        let Some(inode) = table.by_number.get_mut(&number) else { return };
        let continues = before.is_some() && inode.pages == before;
        inode.pages = after.filter(|_| continues);
    }

    fn lock(&self) -> MutexGuard<'_, InodeTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InodeTable {
    fn find(&self, handle: &Handle) -> Option<u64> {
        let is_it =
            |number: &u64| self.by_number.get(number).is_some_and(|inode| inode.handle == *handle);
        self.by_handle.find(self.hasher.hash_one(handle), is_it).copied()
    }

    fn add(&mut self, handle: &Handle, fileid: u64) -> Result<u64, Errno> {
        if self.by_number.len() >= self.max.saturating_mul(NODES_IN_USE_MAX / NODES_MAX) {
            return Err(Errno::NFILE);
        }
        let number = self.free_number(fileid);
        let handle = *handle;
        self.insert(number, Inode { handle, lookups: 0, opens: 0, pages: None, place: None });
        self.oldest.push_back(number);
        Ok(number)
    }

    fn free_number(&mut self, fileid: u64) -> u64 {
        let is_free = fileid > ROOT && fileid < FIRST_OWN && !self.by_number.contains_key(&fileid);
        if is_free {
            return fileid;
        }
        self.own_next = self.own_next.wrapping_add(1).max(FIRST_OWN);
        self.own_next
    }

    fn insert(&mut self, number: u64, inode: Inode) {
        let hash = self.hasher.hash_one(inode.handle);
        self.by_number.insert(number, inode);
        let (by_number, hasher) = (&self.by_number, &self.hasher);
        self.by_handle.insert_unique(hash, number, |number| {
            by_number.get(number).map_or(0, |inode| hasher.hash_one(inode.handle))
        });
    }

    fn remove(&mut self, number: u64) {
        let Some(inode) = self.by_number.get(&number) else { return };
        let hash = self.hasher.hash_one(inode.handle);
        if let Ok(entry) = self.by_handle.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
        self.by_number.remove(&number);
        self.shrink();
    }

    /// Limits the queue: removes numbers of forgotten objects once it is twice as long as the
    /// table.
    fn shrink(&mut self) {
        if self.oldest.len() > 2 * self.by_number.len() + 64 {
            let by_number = &self.by_number;
            self.oldest.retain(|number| by_number.contains_key(number));
            self.oldest.shrink_to(self.by_number.len() * 2);
        }
    }

    /// Names of the oldest objects, if there are more than allowed. They move to the end of the
    /// queue, because the kernel forgets them later, or not at all while they are in use.
    fn too_many(&mut self) -> Vec<EntryPlace> {
        let mut places = Vec::new();
        if self.by_number.len() <= self.max {
            return places;
        }
        for _ in 0..NODES_FORGOTTEN_AT_ONCE {
            let Some(number) = self.oldest.pop_front() else { break };
            let Some(inode) = self.by_number.get(&number) else { continue };
            if inode.opens == 0 {
                places.extend(inode.place.clone());
            }
            self.oldest.push_back(number);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::{Device, FileType, Gid, Mode, Time, Uid};

    use super::*;

    fn handle(number: u64) -> Handle {
        Handle::new(&number.to_be_bytes()).unwrap()
    }

    fn attr(fileid: u64) -> Attr<Disk> {
        Attr {
            file_type: FileType::Regular,
            mode: Mode::new(0o644),
            links: 1,
            uid: Uid::new(0),
            gid: Gid::new(0),
            size: 0,
            used: 0,
            device: Device::default(),
            fsid: 0,
            fileid,
            atime: Time::default(),
            mtime: Time::default(),
            ctime: Time::default(),
            change: 0,
        }
    }

    fn look_up(inodes: &Inodes, number: u64, fileid: u64) -> u64 {
        inodes.look_up(&handle(number), &attr(fileid), None).unwrap().number
    }

    #[test]
    fn an_object_has_the_name_of_its_last_lookup() {
        let inodes = Inodes::new(handle(0));
        let name = |text: &str| (ROOT, text.as_bytes().into());
        let place = |text: &str| Some((handle(0), text.as_bytes().into()));
        assert_eq!(inodes.place(70), None);
        for text in ["one", "two"] {
            inodes.look_up(&handle(7), &attr(70), Some(name(text))).unwrap();
            assert_eq!(inodes.place(70), place(text));
        }
    }

    #[test]
    fn an_object_is_known_until_it_is_forgotten_as_often_as_it_was_looked_up() {
        let inodes = Inodes::new(handle(0));
        assert_eq!(look_up(&inodes, 7, 70), 70);
        assert_eq!(look_up(&inodes, 7, 70), 70);
        inodes.forget(70, 1);
        assert_eq!(inodes.handle(70), Ok(handle(7)));
        inodes.forget(70, 1);
        assert_eq!(inodes.handle(70), Err(Errno::STALE));
        assert_eq!(inodes.number(&handle(7)), None);
    }

    #[test]
    fn the_top_directory_is_never_forgotten() {
        let inodes = Inodes::new(handle(0));
        inodes.forget(ROOT, 100);
        assert_eq!(inodes.handle(ROOT), Ok(handle(0)));
    }

    #[test]
    fn two_objects_of_one_fileid_have_two_numbers() {
        let inodes = Inodes::new(handle(0));
        let one = look_up(&inodes, 1, 70);
        let other = look_up(&inodes, 2, 70);
        assert_ne!(one, other);
        assert_eq!(look_up(&inodes, 2, 70), other);
        assert!(look_up(&inodes, 3, ROOT) > ROOT);
        assert!(look_up(&inodes, 4, 0) > ROOT);
    }

    #[test]
    fn the_kernel_is_asked_to_forget_the_oldest_of_too_many() {
        let inodes = Inodes::bounded(handle(0), 3);
        let known = |number: u64| {
            let place = Some((ROOT, number.to_string().into_bytes().into_boxed_slice()));
            inodes.look_up(&handle(number), &attr(number), place).unwrap().too_many
        };
        assert_eq!(known(10), []);
        inodes.open(10, None);
        assert_eq!(known(11), []);
        let names: Vec<_> = known(12).into_iter().map(|(_, name)| name).collect();
        assert!(names.contains(&b"11".to_vec().into_boxed_slice()), "{names:?}");
        assert!(!names.contains(&b"10".to_vec().into_boxed_slice()), "an open file: {names:?}");
    }

    #[test]
    fn objects_in_use_are_bounded_too() {
        let inodes = Inodes::bounded(handle(0), 1);
        let most = NODES_IN_USE_MAX as u64 / NODES_MAX as u64;
        for number in 1..most {
            look_up(&inodes, number, number + 1);
        }
        assert_eq!(inodes.look_up(&handle(most), &attr(500), None), Err(Errno::NFILE));
    }

    #[test]
    fn pages_survive_own_changes_but_not_those_of_other_clients() {
        let inodes = Inodes::new(handle(0));
        let file = look_up(&inodes, 7, 70);
        assert!(!inodes.open(file, Some(1)), "nothing was read before");
        assert!(inodes.open(file, Some(1)));
        inodes.changed(file, Some(1), Some(2));
        assert!(inodes.open(file, Some(2)), "only this mount changed it");
        assert!(!inodes.observe(file, 2));
        assert!(inodes.observe(file, 3), "another client changed it");
        assert!(!inodes.open(file, Some(3)), "the pages are not dropped yet");
        inodes.changed(file, Some(4), Some(5));
        assert!(!inodes.open(file, Some(5)), "another change came between 3 and 4");
        inodes.changed(file, None, None);
        assert!(!inodes.open(file, None), "the pages belong to no known change attribute");
        assert!(!inodes.open(file, Some(7)));
        assert!(inodes.open(file, None), "delegated since");
    }
}
