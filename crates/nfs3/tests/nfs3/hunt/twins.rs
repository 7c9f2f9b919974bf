//! Two servers with one difference: objects that the first hides do not exist on the second.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use comity_export::{ExportId, ExportRequest, HandleKey, Source, Sources, load};
use comity_vfs::{
    Attr, Create, Cred, Disk, FileType, Fs, Gid, Handle, Listed, Mode, Name, SetAttr, SetTime,
    Special, Uid,
};

use super::grants::by_key;
use super::ground::Ground;
use super::rng::Rng;
use super::rule::Rule;
use crate::world::{World, set_clock};

/// The number of the export, which is in every handle and every fsid.
pub(crate) const EXPORT: u32 = 0x5a17;
pub(crate) const UIDS: u32 = 500;
pub(crate) const GIDS: u32 = 600;
const ANONYMOUS: u32 = 65_534;
/// The highest number of names of one kind: `n00`, `l00` and so on.
pub(crate) const OBJECTS: usize = 14;
const MODES: [u32; 14] = [
    0o777, 0o755, 0o750, 0o700, 0o770, 0o644, 0o640, 0o600, 0o000, 0o1777, 0o2775, 0o666, 0o711,
    0o733,
];

/// The caller.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) wire: (u32, u32, Vec<u32>),
    pub(crate) disk: Cred<Disk>,
}

/// One of the two servers.
pub(crate) struct Twin {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) world: World,
}

/// An object that calls are made about; it has a different handle on each server.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) handles: [Handle; 2],
    pub(crate) path: String,
    /// Its entries, if it is a directory.
    pub(crate) names: Option<Vec<Vec<u8>>>,
}

/// The way in which the caller is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identified {
    /// The callers are known by the ids that they claim.
    ByIds,
    /// The callers are known by a key, to which a user with these ids has granted rights to some
    /// objects.
    ByKey,
}

pub(crate) struct Twins {
    /// The server with the hidden objects, and the one without.
    pub(crate) twins: [Twin; 2],
    pub(crate) caller: Caller,
    pub(crate) rule: Rule,
    pub(crate) options: String,
    /// The fileids of the objects that were granted to the caller's key, and of the directories
    /// above them; `None` for a caller that is known by its ids.
    granted: Option<BTreeSet<u64>>,
    /// Objects that the caller may see and can reach, and hidden ones.
    pub(crate) targets: Vec<Target>,
    pub(crate) hidden: usize,
    /// Visible directories below hidden ones. The second server does not have them.
    pub(crate) buried: Vec<Buried>,
    ground: Ground,
}

/// A visible directory below a hidden one: no path leads to it, but an old handle does.
#[derive(Debug, Clone)]
pub(crate) struct Buried {
    pub(crate) target: Target,
    /// True if the directory directly above is hidden.
    pub(crate) under_hidden: bool,
}

/// The relation of the caller to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Reachable,
    Hidden,
    /// The object is visible, but is below a hidden directory.
    Buried {
        under_hidden: bool,
    },
}

impl Standing {
    const fn below(self, hidden: bool) -> Self {
        match self {
            _ if hidden => Self::Hidden,
            Self::Reachable => Self::Reachable,
            Self::Hidden => Self::Buried { under_hidden: true },
            Self::Buried { .. } => Self::Buried { under_hidden: false },
        }
    }
}

pub(crate) fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

/// A handle as clients see it.
pub(crate) fn sealed(handle: &Handle) -> Vec<u8> {
    key().seal(ExportId(EXPORT), handle).bytes().to_vec()
}

pub(crate) fn key() -> HandleKey {
    HandleKey::new([7; 16])
}

impl Twins {
    pub(crate) fn new(rng: &mut Rng, ground: Ground, identified: Identified) -> Self {
        let caller = caller(rng);
        // With a key there is no cloak: it could hide a directory above a granted object on one of
        // the servers only.
        let rule = match identified {
            Identified::ByIds => Rule::random(rng),
            Identified::ByKey => Rule::none(),
        };
        let mut options = options(rng, &rule);
        let filesystems = ground.filesystems(rng);
        grown(&filesystems, rng);
        let (worlds, granted) = match identified {
            Identified::ByIds => {
                let of = |fs: &Arc<dyn Fs>| World::of(plan(fs, &options));
                (filesystems.each_ref().map(of), None)
            }
            Identified::ByKey => {
                options += ",sec=key";
                let (worlds, granted, told) = by_key(rng, &filesystems, &options, &caller.disk);
                options += &told;
                (worlds, Some(granted))
            }
        };
        let [first, second] = filesystems;
        let [one, other] = worlds;
        let mut twins = Self {
            twins: [Twin { fs: first, world: one }, Twin { fs: second, world: other }],
            caller,
            rule,
            options,
            granted,
            targets: Vec::new(),
            hidden: 0,
            buried: Vec::new(),
            ground,
        };
        let (uid, gid, gids) = &twins.caller.wire;
        twins.twins.iter().for_each(|twin| twin.world.act_as(*uid, *gid, gids));
        twins.find_targets();
        let [first, second] = &twins.twins;
        twins.prune((first, first.fs.root()), (second, second.fs.root()));
        twins.settle();
        twins
    }

    pub(crate) const fn are_on_disk(&self) -> bool {
        matches!(self.ground, Ground::Disk(..))
    }

    pub(crate) fn hides(&self, attr: &Attr<Disk>) -> bool {
        let is_granted = self.granted.as_ref().is_none_or(|ids| ids.contains(&attr.fileid));
        !is_granted || !self.rule.shows(&self.caller.disk, attr)
    }

    /// Finds all objects. Visible ones below a hidden directory are kept apart: no path leads to
    /// them, but an old handle is still valid on the first server.
    fn find_targets(&mut self) {
        let mut found = BTreeMap::new();
        let roots = self.twins.each_ref().map(|twin| twin.fs.root());
        let names = Some(names(&*self.twins[0].fs, &roots[0]));
        let top = Target { handles: roots, path: String::new(), names };
        self.walk((&top, Standing::Reachable), &mut found);
        found.insert(0, (top, Standing::Reachable));
        for (target, standing) in found.into_values() {
            self.hidden += usize::from(standing == Standing::Hidden);
            match standing {
                Standing::Buried { under_hidden } if target.names.is_some() => {
                    self.buried.push(Buried { target, under_hidden });
                }
                Standing::Buried { .. } => {}
                _ => self.targets.push(target),
            }
        }
    }

    fn walk(&self, (dir, above): (&Target, Standing), found: &mut BTreeMap<u64, Found>) {
        for (name, attr) in entries(&*self.twins[0].fs, &dir.handles[0]) {
            let handles = [0, 1].map(|side| {
                let (fs, dir) = (&self.twins[side].fs, &dir.handles[side]);
                fs.lookup(&root(), dir, Name::new(&name).unwrap()).unwrap().node.handle
            });
            let path = format!("{}/{}", dir.path, String::from_utf8_lossy(&name));
            let standing = above.below(self.hides(&attr));
            let is_directory = attr.file_type == FileType::Directory;
            let names = is_directory.then(|| names(&*self.twins[0].fs, &handles[0]));
            let target = Target { handles, path, names };
            if is_directory {
                self.walk((&target, standing), found);
            } else if attr.links > 1 && matches!(standing, Standing::Buried { .. }) {
                // The name that this caller must not see is removed on both servers, so that both
                // have the same last name of the object.
                self.twins.iter().zip(&dir.handles).for_each(|(twin, dir)| {
                    remove(&*twin.fs, dir, Name::new(&name).unwrap());
                });
                continue;
            }
            found.insert(attr.fileid, (target, standing));
        }
    }

    /// Returns whether a reply of the first server contains the handle of a hidden object.
    pub(crate) fn betrays(&self, reply: &[u8]) -> bool {
        let fs = &self.twins[0].fs;
        let is_hidden =
            |target: &&Target| fs.getattr(&target.handles[0]).is_ok_and(|attr| self.hides(&attr));
        let mut hidden = self.targets.iter().skip(1).filter(is_hidden);
        hidden.any(|target| {
            let sealed = sealed(&target.handles[0]);
            reply.windows(sealed.len()).any(|bytes| bytes == sealed)
        })
    }

    /// Removes from the second server the objects that are hidden on the first.
    fn prune(&self, (first, dir): (&Twin, Handle), (second, other): (&Twin, Handle)) {
        for (name, attr) in entries(&*first.fs, &dir) {
            let name = Name::new(&name).unwrap();
            if self.hides(&attr) {
                remove(&*second.fs, &other, name);
            } else if attr.file_type == FileType::Directory {
                let below =
                    |fs: &dyn Fs, dir: &Handle| fs.lookup(&root(), dir, name).unwrap().node.handle;
                let (next, below) = (below(&*first.fs, &dir), below(&*second.fs, &other));
                self.prune((first, next), (second, below));
            }
        }
    }

    /// Gives all remaining objects the same times.
    fn settle(&self) {
        set_clock(2);
        let time = Some(SetTime::Now);
        let set = SetAttr { atime: time, mtime: time, ..SetAttr::default() };
        for target in &self.targets {
            for (twin, handle) in self.twins.iter().zip(&target.handles) {
                // Some objects do not exist on the second server.
                let _ = twin.fs.setattr(&root(), handle, &set, None);
            }
        }
    }
}

/// An object and the caller's relation to it.
type Found = (Target, Standing);

fn names(fs: &dyn Fs, dir: &Handle) -> Vec<Vec<u8>> {
    entries(fs, dir).into_iter().map(|(name, _)| name).collect()
}

/// The names and attributes of the entries of a directory.
pub(crate) fn entries(fs: &dyn Fs, dir: &Handle) -> Vec<(Vec<u8>, Attr<Disk>)> {
    let mut found = Vec::new();
    fs.readdir(&root(), dir, 0, Listed::Nodes, &mut |listing| {
        found.push((listing.name.bytes().to_vec(), listing.node.unwrap().attr));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

fn remove(fs: &dyn Fs, dir: &Handle, name: Name<'_>) {
    let node = fs.lookup(&root(), dir, name).unwrap().node;
    if node.attr.file_type != FileType::Directory {
        fs.remove(&root(), dir, name).unwrap();
        return;
    }
    for (below, _) in entries(fs, &node.handle) {
        remove(fs, &node.handle, Name::new(&below).unwrap());
    }
    fs.rmdir(&root(), dir, name).unwrap();
}

/// A random caller. Half of the ids are mapped: 100 and 200 of the client are 500 and 600 of the
/// server.
fn caller(rng: &mut Rng) -> Caller {
    if rng.one_in(8) {
        let disk = Cred::new(Uid::new(ANONYMOUS), Gid::new(ANONYMOUS));
        return Caller { wire: (0, 0, vec![]), disk };
    }
    let mut number = || rng.below(5) as u32;
    let (uid, gid, groups) = (number(), number(), [number(), number()]);
    let groups = &groups[..rng.below(3)];
    Caller {
        wire: (UIDS - 400 + uid, GIDS - 400 + gid, groups.iter().map(|n| 200 + n).collect()),
        disk: Cred::new(Uid::new(UIDS + uid), Gid::new(GIDS + gid))
            .with_groups(groups.iter().map(|n| Gid::new(GIDS + n))),
    }
}

fn options(rng: &mut Rng, rule: &Rule) -> String {
    let maps = "range_map_uid=100-104:500-504,range_map_gid=200-204:600-604";
    let extra = *rng.pick(&["", "", ",no_client_cache", ",ro", ",async"]);
    let default = *rng.pick(&["squash", "deny", "pass"]);
    format!("rw,insecure,fsid={EXPORT},{maps},map_default={default}{rule}{extra}")
        .replace("rw,insecure", if extra == ",ro" { "insecure" } else { "rw,insecure" })
}

pub(crate) fn plan(fs: &Arc<dyn Fs>, options: &str) -> comity_export::Plan {
    plan_after(None, fs, options)
}

/// A plan as after a reload of another one.
pub(crate) fn plan_after(
    old: Option<&comity_export::Plan>,
    fs: &Arc<dyn Fs>,
    options: &str,
) -> comity_export::Plan {
    let source = Source::Text { name: "e".into(), text: format!("/srv *({options})\n").into() };
    let netgroups = "/nonexistent".into();
    let sources = Sources { netgroups, ..Sources::new(vec![source]) };
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(fs));
    load(&sources, &open, key(), old).unwrap_or_else(|findings| panic!("{findings:?}")).0
}

/// Makes the same random tree in both file systems; in memory, the same objects have the same
/// fileids.
fn grown(filesystems: &[Arc<dyn Fs>; 2], rng: &mut Rng) {
    let mut dirs = vec![filesystems.each_ref().map(|fs| fs.root())];
    let mut files = Vec::new();
    for number in 0..OBJECTS {
        let (dir, name) = (*rng.pick(&dirs), format!("n{number:02}"));
        let kind = rng.below(8);
        let set = SetAttr {
            uid: Some(Uid::new(UIDS + rng.below(5) as u32)),
            gid: Some(Gid::new(GIDS + rng.below(5) as u32)),
            mode: Some(Mode::new(*rng.pick(&MODES))),
            ..SetAttr::default()
        };
        let made = [0, 1].map(|side| planted(&*filesystems[side], &dir[side], &name, kind, &set));
        if kind < 3 {
            dirs.push(made)
        } else {
            files.push(made)
        }
        if rng.one_in(6) && !files.is_empty() {
            let (file, dir) = (rng.pick(&files), rng.pick(&dirs));
            let name = format!("l{number:02}");
            for side in 0..2 {
                let name = Name::new(name.as_bytes()).unwrap();
                filesystems[side].link(&root(), &file[side], &dir[side], name).unwrap();
            }
        }
    }
}

/// Makes an object of the kind with this number.
pub(crate) fn planted(
    fs: &dyn Fs,
    dir: &Handle,
    name: &str,
    kind: usize,
    set: &SetAttr<Disk>,
) -> Handle {
    let (name, plain) = (Name::new(name.as_bytes()).unwrap(), SetAttr::default());
    let made = match kind {
        0..3 => fs.mkdir(&root(), dir, name, &plain),
        3 => fs.symlink(&root(), dir, name, b"n00", &plain),
        4 => fs.mknod(&root(), dir, name, Special::Fifo, &plain),
        _ => fs.create(&root(), dir, name, &Create::Guarded(plain)),
    };
    let handle = made.unwrap().value.handle;
    if kind > 4 {
        fs.write(&root(), &handle, 0, b"some words of a file").unwrap();
    }
    let mode = if kind == 3 { None } else { set.mode };
    fs.setattr(&root(), &handle, &SetAttr { mode, ..*set }, None).unwrap();
    handle
}
