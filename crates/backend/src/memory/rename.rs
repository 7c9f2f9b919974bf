use std::sync::{Arc, MutexGuard, PoisonError};

use comity_vfs::permission::Permissions;
use comity_vfs::{Attr, Change, Cred, Disk, Handle, Name, Result, Status};

use super::Memory;
use super::limits::RETRIES_MAX;
use super::names::{enter, find, is_still, may_add, unlink};
use super::node::{Body, Locked, Node};

pub(super) fn rename(
    memory: &Memory,
    cred: &Cred<Disk>,
    (source, old): (&Handle, Name<'_>),
    (target, new): (&Handle, Name<'_>),
) -> Result<(Change<Disk>, Change<Disk>)> {
    let source = memory.table.find(source)?;
    source.read().directory()?;
    let target = memory.table.find(target)?;
    target.read().directory()?;
    for _ in 0..RETRIES_MAX {
        let moved = find(&source, cred, old)?;
        let replaced = find(&target, cred, new)?;
        let Ok(moved) = memory.table.get(moved.ok_or(Status::NoEnt)?) else { continue };
        let Ok(replaced) = replaced.map(|fileid| memory.table.get(fileid)).transpose() else {
            continue;
        };
        let step = Move { source: &source, old, target: &target, new, moved, replaced };
        if let Some(done) = step.run(memory, cred)? {
            return Ok(done);
        }
    }
    Err(Status::Delay)
}

/// One attempt of a rename: the object, its source and its target.
struct Move<'a> {
    source: &'a Node,
    old: Name<'a>,
    target: &'a Node,
    new: Name<'a>,
    moved: Arc<Node>,
    replaced: Option<Arc<Node>>,
}

impl Move<'_> {
    /// Renames the object; returns `None` if another change came between.
    fn run(
        &self,
        memory: &Memory,
        cred: &Cred<Disk>,
    ) -> Result<Option<(Change<Disk>, Change<Disk>)>> {
        let _moving = self.check_places(memory)?;
        let replaced = self.replaced.as_deref();
        let nodes = [self.source, self.target, &*self.moved].into_iter().chain(replaced);
        let mut locked = Locked::new(nodes);
        let replaced = replaced.map(|node| node.fileid);
        let unchanged = is_still(&locked, self.source.fileid, self.old, Some(self.moved.fileid))?
            && is_still(&locked, self.target.fileid, self.new, replaced)?;
        if !unchanged {
            return Ok(None);
        }
        if replaced == Some(self.moved.fileid) {
            let attrs = self.attrs(&locked)?;
            return Ok(Some(changes(attrs, attrs)));
        }
        self.check(memory, cred, &locked)?;
        self.apply(memory, &mut locked).map(Some)
    }

    /// Checks a rename between directories: a directory must not move below itself, or replace a
    /// directory that contains it. While the guard is held, the path up to the root does not
    /// change.
    fn check_places<'m>(&self, memory: &'m Memory) -> Result<Option<MutexGuard<'m, ()>>> {
        let replaced = self.replaced.as_deref().filter(|node| node.read().is_directory());
        let moved = Some(&*self.moved).filter(|node| node.read().is_directory());
        if self.source.fileid == self.target.fileid || moved.or(replaced).is_none() {
            return Ok(None);
        }
        let guard = memory.moving.lock().unwrap_or_else(PoisonError::into_inner);
        if is_above(memory, &self.moved, self.target)? {
            return Err(Status::Inval);
        }
        if replaced.map_or(Ok(false), |node| is_above(memory, node, self.source))? {
            return Err(Status::NotEmpty);
        }
        Ok(Some(guard))
    }

    fn check(&self, memory: &Memory, cred: &Cred<Disk>, locked: &Locked<'_>) -> Result<()> {
        let (source, target) = (locked.get(self.source.fileid)?, locked.get(self.target.fileid)?);
        let moved = locked.get(self.moved.fileid)?;
        source.object(&enter(source, cred)?).check_delete(cred, &moved.attr())?;
        let target_attr = enter(target, cred)?;
        match &self.replaced {
            None => may_add(target, &target_attr, cred)?,
            Some(replaced) => {
                let replaced = locked.get(replaced.fileid)?;
                target.object(&target_attr).check_delete(cred, &replaced.attr())?;
                check_replace(&moved.body, &replaced.body)?;
            }
        }
        if !moved.is_directory() || self.source.fileid == self.target.fileid {
            return Ok(());
        }
        if self.replaced.is_none() && target_attr.links >= memory.options.links_max {
            return Err(Status::MLink);
        }
        // The entry `..` of the moved directory changes.
        moved.object(&moved.attr()).check(cred, Permissions::WRITE)
    }

    /// Makes the change. All steps that can fail come first.
    fn apply(
        &self,
        memory: &Memory,
        locked: &mut Locked<'_>,
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        let before = self.attrs(locked)?;
        let now = memory.now();
        let is_directory = locked.get(self.moved.fileid)?.is_directory();
        let (target, charge) = locked.get_mut(self.target.fileid)?.directory_mut()?;
        match &self.replaced {
            None => target.insert(charge, self.new, self.moved.fileid)?,
            Some(_) => target.replace(self.new, self.moved.fileid),
        }
        target.subdirectories += u32::from(is_directory && self.replaced.is_none());
        let (source, charge) = locked.get_mut(self.source.fileid)?.directory_mut()?;
        source.remove(charge, self.old);
        source.subdirectories -= u32::from(is_directory);
        if let Some(replaced) = &self.replaced {
            unlink(memory, locked.get_mut(replaced.fileid)?);
        }
        let moved = locked.get_mut(self.moved.fileid)?;
        moved.touch(now);
        if let Body::Directory(directory) = &mut moved.body {
            directory.parent = self.target.fileid;
        }
        locked.get_mut(self.source.fileid)?.touch_data(now);
        if self.source.fileid != self.target.fileid {
            locked.get_mut(self.target.fileid)?.touch_data(now);
        }
        let after = self.attrs(locked)?;
        Ok(changes(before, after))
    }

    fn attrs(&self, locked: &Locked<'_>) -> Result<Attrs> {
        Ok((locked.get(self.source.fileid)?.attr(), locked.get(self.target.fileid)?.attr()))
    }
}

/// Returns whether `below` is `node` or is below it.
fn is_above(memory: &Memory, node: &Node, below: &Node) -> Result<bool> {
    let mut fileid = below.fileid;
    while fileid != node.fileid {
        let parent = memory.table.get(fileid)?.read().directory()?.parent;
        if parent == fileid {
            return Ok(false);
        }
        fileid = parent;
    }
    Ok(true)
}

/// Attributes of the source directory and of the target directory.
type Attrs = (Attr<Disk>, Attr<Disk>);

fn changes(before: Attrs, after: Attrs) -> (Change<Disk>, Change<Disk>) {
    let change = |before, after| Change { before: Some(before), after: Some(after) };
    (change(before.0, after.0), change(before.1, after.1))
}

/// Checks that a directory replaces only an empty directory, and another object only an object that
/// is no directory.
fn check_replace(moved: &Body, replaced: &Body) -> Result<()> {
    match (moved, replaced) {
        (Body::Directory(_), Body::Directory(entries)) if entries.is_empty() => Ok(()),
        (Body::Directory(_), Body::Directory(_)) => Err(Status::NotEmpty),
        (Body::Directory(_), _) => Err(Status::NotDir),
        (_, Body::Directory(_)) => Err(Status::IsDir),
        _ => Ok(()),
    }
}
