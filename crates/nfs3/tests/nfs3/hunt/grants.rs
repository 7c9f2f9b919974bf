//! Callers of the hunt that are known by a key, to which Alice has granted rights to some objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use comity_vfs::{Attr, Cred, Disk, Fs, Handle, Name};

use super::rng::Rng;
use super::twins::{EXPORT, entries, plan, root};
use crate::granted::{Extent, Granted, RIGHTS};
use crate::world::World;

/// An object by one of its names, and the directories above it, beginning with the root.
struct Named {
    handles: [Handle; 2],
    fileid: u64,
    above: Vec<u64>,
    path: String,
}

/// A grant by Alice.
struct Grant {
    handles: [Handle; 2],
    fileid: u64,
    extent: Extent,
    rights: String,
}

/// Two servers of these file systems for a caller with a key, the fileids of the objects that the
/// key may see, and a description of the grants.
pub(super) fn by_key(
    rng: &mut Rng,
    filesystems: &[Arc<dyn Fs>; 2],
    options: &str,
    alice: &Cred<Disk>,
) -> ([World; 2], BTreeSet<u64>, String) {
    let all = named(filesystems);
    let grants: Vec<Grant> = (0..1 + rng.below(3)).map(|_| grant(rng, &all)).collect();
    let worlds = [0, 1].map(|side| {
        let fs = &filesystems[side];
        let granted = Granted::by(alice.clone());
        let plan = plan(fs, options).granting(Some(Arc::clone(&granted.grants)));
        tell(&granted, &plan, (&**fs, &fs.root()));
        for Grant { handles, extent, rights, .. } in &grants {
            granted.grant(&handles[side], *extent, rights);
        }
        World::of(plan).by_channel(granted.channel())
    });
    let told = grants.iter().map(|grant| {
        let at = all.iter().find(|named| named.fileid == grant.fileid);
        let path = at.map_or("the top", |named| &named.path);
        format!(" [{:?} {path}: {}]", grant.extent, grant.rights)
    });
    (worlds, known(&filesystems[0], &all, &grants), told.collect())
}

/// The rule of docs/exports.md, implemented from its text: a key sees the objects that were granted
/// to it and the directories above them.
fn known(fs: &Arc<dyn Fs>, all: &[Named], grants: &[Grant]) -> BTreeSet<u64> {
    let top = fs.getattr(&fs.root()).unwrap().fileid;
    let mut known = BTreeSet::from([top]);
    for named in all {
        let is_granted = |grant: &Grant| grant.fileid == named.fileid;
        let is_below =
            |grant: &Grant| grant.extent == Extent::Tree && named.above.contains(&grant.fileid);
        if grants.iter().any(is_granted) {
            known.extend(&named.above);
        }
        if grants.iter().any(|grant| is_granted(grant) || is_below(grant)) {
            known.insert(named.fileid);
        }
    }
    known
}

fn grant(rng: &mut Rng, all: &[Named]) -> Grant {
    // A directory is granted without the objects below it, so that hidden names are met in it.
    let is_parent = |named: &&Named| all.iter().any(|one| one.above.contains(&named.fileid));
    let parents: Vec<&Named> = all.iter().filter(is_parent).collect();
    if rng.one_in(2) && !parents.is_empty() {
        let Named { handles, fileid, .. } = rng.pick(&parents);
        let rights = RIGHTS.to_owned();
        return Grant { handles: *handles, fileid: *fileid, extent: Extent::Object, rights };
    }
    let rights = match rng.one_in(3) {
        true => RIGHTS.to_owned(),
        false => RIGHTS.chars().filter(|_| rng.one_in(2)).collect(),
    };
    let rights = if rights.is_empty() { "x".to_owned() } else { rights };
    let extent = if rng.one_in(4) { Extent::Object } else { Extent::Tree };
    let Named { handles, fileid, .. } = rng.pick(all);
    Grant { handles: *handles, fileid: *fileid, extent, rights }
}

/// All names in the two file systems.
fn named(filesystems: &[Arc<dyn Fs>; 2]) -> Vec<Named> {
    let roots = filesystems.each_ref().map(|fs| fs.root());
    let fileid = filesystems[0].getattr(&roots[0]).unwrap().fileid;
    let top = Named { handles: roots, fileid, above: Vec::new(), path: String::new() };
    let mut found = Vec::new();
    walk(filesystems, &top, &mut found);
    found
}

fn walk(filesystems: &[Arc<dyn Fs>; 2], dir: &Named, found: &mut Vec<Named>) {
    for (name, Attr { fileid, file_type, .. }) in entries(&*filesystems[0], &dir.handles[0]) {
        let handles = [0, 1].map(|side| below(&*filesystems[side], &dir.handles[side], &name));
        let above = dir.above.iter().copied().chain([dir.fileid]).collect();
        let path = format!("{}/{}", dir.path, String::from_utf8_lossy(&name));
        let named = Named { handles, fileid, above, path };
        if file_type == comity_vfs::FileType::Directory {
            walk(filesystems, &named, found);
        }
        found.push(named);
    }
}

fn below(fs: &dyn Fs, dir: &Handle, name: &[u8]) -> Handle {
    fs.lookup(&root(), dir, Name::new(name).unwrap()).unwrap().node.handle
}

/// Lets the server learn every name of every object, as if other clients had used them.
fn tell(granted: &Granted, plan: &comity_export::Plan, (fs, dir): (&dyn Fs, &Handle)) {
    for (name, attr) in entries(fs, dir) {
        let object = below(fs, dir, &name);
        granted.tell(plan, EXPORT, (dir, &name), &object);
        if attr.file_type == comity_vfs::FileType::Directory {
            tell(granted, plan, (fs, &object));
        }
    }
}
