//! The memory backend does what the kernel's own file system does: random operations by random
//! callers are done in both and have the same outcome. Needs root; without it the test is skipped
//! with a message.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::ops::ControlFlow;
use std::path::Path;
use std::thread;

use comity_backend::{Memory, MemoryOptions, Passthrough, PassthroughOptions};
use comity_vfs::{
    Access, Acl, AclEntry, AclKind, AclTag, Attr, Create, Cred, Disk, FileType, Fs, Gid, Handle,
    Listed, Mode, Name, ReadInto, Result, SetAttr, SetTime, Special, Time, Uid,
};
use proptest::prelude::*;

/// A step. It names objects by their position in the list of all objects that were made.
#[derive(Debug, Clone)]
enum Step {
    Create(usize, usize, How, u32),
    /// The modes have no set-id bits, because a kernel sets those by a second call.
    Mkdir(usize, usize, u32),
    Symlink(usize, usize),
    Fifo(usize, usize, u32),
    Remove(usize, usize),
    Rmdir(usize, usize),
    Rename((usize, usize), (usize, usize)),
    Link(usize, usize, usize),
    Lookup(usize, usize),
    Setattr(usize, SetAttr<Disk>),
    Access(usize),
    Write(usize, u64, usize),
    Read(usize, u64),
    List(usize),
    Setacl(usize, AclKind, [u8; 6]),
    Parent(usize),
}

#[derive(Debug, Clone, Copy)]
enum How {
    Unchecked(Option<u64>),
    Guarded,
    Exclusive(u8),
}

/// The visible outcome of a verb: a status, or what both must agree on.
type Seen = Result<Vec<String>>;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const UIDS: [u32; 3] = [0, 61_001, 61_002];
const GIDS: [u32; 3] = [0, 62_001, 62_002];

fn step() -> impl Strategy<Value = Step> {
    let at = || 0..12_usize;
    let name = || 0..NAMES.len();
    let mode = || prop_oneof![3 => 0..0o10000_u32, 2 => Just(0o777), 1 => Just(0o1777)];
    let names = prop_oneof![
        (at(), name(), mode()).prop_map(|(dir, name, mode)| Step::Mkdir(dir, name, mode & 0o1777)),
        (at(), name()).prop_map(|(dir, name)| Step::Symlink(dir, name)),
        (at(), name(), mode()).prop_map(|(dir, name, mode)| Step::Fifo(dir, name, mode)),
        (at(), name()).prop_map(|(dir, name)| Step::Remove(dir, name)),
        (at(), name()).prop_map(|(dir, name)| Step::Rmdir(dir, name)),
        ((at(), name()), (at(), name())).prop_map(|(old, new)| Step::Rename(old, new)),
        (at(), at(), name()).prop_map(|(node, dir, name)| Step::Link(node, dir, name)),
        (at(), name()).prop_map(|(dir, name)| Step::Lookup(dir, name)),
        (at(), name(), how(), mode())
            .prop_map(|(dir, name, how, mode)| Step::Create(dir, name, how, mode)),
    ];
    let kind = prop_oneof![Just(AclKind::Access), Just(AclKind::Default)];
    let nodes = prop_oneof![
        (at(), setattr()).prop_map(|(node, set)| Step::Setattr(node, set)),
        at().prop_map(Step::Access),
        at().prop_map(Step::Parent),
        at().prop_map(Step::List),
        (at(), 0..20_000_u64, 0..9_000_usize).prop_map(|(n, at, len)| Step::Write(n, at, len)),
        (at(), 0..20_000_u64).prop_map(|(node, offset)| Step::Read(node, offset)),
        (at(), kind, prop::array::uniform6(0..8_u8))
            .prop_map(|(node, kind, digits)| Step::Setacl(node, kind, digits)),
    ];
    prop_oneof![3 => names, 2 => nodes]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        prop::option::of(0..100_u64).prop_map(How::Unchecked),
        Just(How::Guarded),
        (0..2_u8).prop_map(How::Exclusive),
    ]
}

/// Sets one kind of attribute at a time: a kernel sets several kinds by several calls, and the
/// first of them may succeed before another fails.
fn setattr() -> impl Strategy<Value = SetAttr<Disk>> {
    let id = |ids: [u32; 3]| prop::option::of(prop::sample::select(ids.to_vec()));
    let time = SetTime::To(Time { seconds: 5, nanoseconds: 6 });
    let times = |atime, mtime| SetAttr { atime, mtime, ..SetAttr::default() };
    prop_oneof![
        (0..0o10000_u32).prop_map(mode),
        (0..20_000_u64).prop_map(|size| SetAttr { size: Some(size), ..SetAttr::default() }),
        (id(UIDS), id(GIDS)).prop_map(|(uid, gid)| {
            let (uid, gid) = (uid.map(Uid::new), gid.map(Gid::new));
            SetAttr { uid, gid, ..SetAttr::default() }
        }),
        Just(times(Some(SetTime::Now), Some(SetTime::Now))),
        Just(times(Some(time), None)),
        Just(times(Some(SetTime::Now), Some(time))),
    ]
}

fn caller() -> impl Strategy<Value = Cred<Disk>> {
    let pick = |ids: [u32; 3]| prop::sample::select(ids.to_vec());
    (pick(UIDS), pick(GIDS), prop::collection::vec(pick(GIDS), 0..2)).prop_map(
        |(uid, gid, groups)| {
            Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups.into_iter().map(Gid::new))
        },
    )
}

/// A file system, and its handle of each object that was made.
struct World<'a> {
    fs: &'a dyn Fs,
    nodes: Vec<Handle>,
}

fn name(place: usize) -> Name<'static> {
    Name::new(NAMES[place].as_bytes()).unwrap()
}

fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

fn mode(bits: u32) -> SetAttr<Disk> {
    SetAttr { mode: Some(Mode::new(bits)), ..SetAttr::default() }
}

/// Returns the attributes that two file systems must agree on. Fileids, times and the size of a
/// directory differ.
fn seen(attr: &Attr<Disk>) -> String {
    let Attr { file_type, mode, links, uid, gid, size, .. } = attr;
    let size = if *file_type == FileType::Directory { 0 } else { *size };
    format!("{file_type:?} {:o} {links} {uid} {gid} {size}", mode.bits())
}

impl World<'_> {
    fn node(&self, place: usize) -> &Handle {
        &self.nodes[place % self.nodes.len()]
    }

    fn step(&mut self, cred: &Cred<Disk>, step: &Step) -> Seen {
        match self.make(cred, step) {
            Some(made) => {
                let node = made?;
                // The number of links shows whether the object is new in both.
                self.nodes.push(node);
                Ok(vec![seen(&self.fs.getattr(&node)?)])
            }
            None => self.change(cred, step).unwrap_or_else(|| self.look(cred, step)),
        }
    }

    fn is_pipe(&self, place: usize) -> bool {
        let attr = self.fs.getattr(self.node(place));
        attr.is_ok_and(|attr| attr.file_type == FileType::Fifo)
    }

    fn make(&self, cred: &Cred<Disk>, step: &Step) -> Option<Result<Handle>> {
        let fs = self.fs;
        let made = match *step {
            Step::Create(dir, at, how, bits) => {
                let how = match how {
                    // A kernel sets the size of a new file by a write, which clears set-id bits.
                    How::Unchecked(size) => {
                        Create::Unchecked(SetAttr { size, ..mode(bits & 0o1777) })
                    }
                    How::Guarded => Create::Guarded(mode(bits)),
                    How::Exclusive(byte) => Create::Exclusive([byte; 8]),
                };
                fs.create(cred, self.node(dir), name(at), &how)
            }
            Step::Mkdir(dir, at, bits) => fs.mkdir(cred, self.node(dir), name(at), &mode(bits)),
            Step::Symlink(dir, at) => {
                fs.symlink(cred, self.node(dir), name(at), b"target", &mode(0o777))
            }
            Step::Fifo(dir, at, bits) => {
                fs.mknod(cred, self.node(dir), name(at), Special::Fifo, &mode(bits))
            }
            _ => return None,
        };
        Some(made.map(|made| made.value.handle))
    }

    fn change(&self, cred: &Cred<Disk>, step: &Step) -> Option<Seen> {
        let (fs, nothing) = (self.fs, Vec::new());
        Some(match *step {
            Step::Remove(dir, at) => fs.remove(cred, self.node(dir), name(at)).map(|_| nothing),
            Step::Rmdir(dir, at) => fs.rmdir(cred, self.node(dir), name(at)).map(|_| nothing),
            Step::Rename((from, old), (to, new)) => {
                let (from, to) = ((self.node(from), name(old)), (self.node(to), name(new)));
                fs.rename(cred, from, to).map(|_| nothing)
            }
            Step::Link(node, dir, at) => {
                // The link is made by root, because `fs.protected_hardlinks` forbids more than the
                // mode does.
                let linked = fs.link(&root(), self.node(node), self.node(dir), name(at));
                linked.map(|linked| vec![seen(&linked.value)])
            }
            Step::Setattr(node, set) => {
                fs.setattr(cred, self.node(node), &set, None).map(|_| nothing)
            }
            // Memory and most disks keep ACLs for pipes; the passthrough does not offer them.
            Step::Setacl(node, ..) if self.is_pipe(node) => Ok(nothing),
            Step::Setacl(node, kind, digits) => {
                fs.setacl(cred, self.node(node), kind, Some(&acl(digits))).map(|_| nothing)
            }
            Step::Write(node, at, length) => {
                let written = fs.write(cred, self.node(node), at, &vec![length as u8; length]);
                written.map(|written| vec![written.value.to_string()])
            }
            _ => return None,
        })
    }

    fn look(&self, cred: &Cred<Disk>, step: &Step) -> Seen {
        match *step {
            Step::Lookup(dir, at) => {
                let entry = self.fs.lookup(cred, self.node(dir), name(at))?;
                Ok(vec![seen(&entry.node.attr)])
            }
            Step::Access(node) => {
                let (granted, _) = self.fs.access(cred, self.node(node), Access::ALL)?;
                Ok(vec![format!("{granted:?}")])
            }
            Step::Parent(node) => Ok(vec![seen(&self.fs.parent(cred, self.node(node))?.attr)]),
            Step::Read(node, offset) => {
                let mut bytes = Vec::new();
                let mut into = ReadInto::new(&mut bytes);
                let eof = self.fs.read(cred, self.node(node), offset, 5_000, &mut into)?.eof;
                Ok(vec![format!("{eof} {bytes:?}")])
            }
            Step::List(node) => self.list(cred, self.node(node)),
            _ => Ok(vec!["not a step that looks".into()]),
        }
    }

    fn list(&self, cred: &Cred<Disk>, dir: &Handle) -> Seen {
        let mut names = Vec::new();
        self.fs.readdir(cred, dir, 0, Listed::Names, &mut |entry| {
            names.push(entry.name.to_string());
            ControlFlow::Continue(())
        })?;
        names.sort();
        Ok(names)
    }

    /// The visible state of every object.
    fn whole(&self) -> Vec<Seen> {
        let mut all = Vec::new();
        for node in &self.nodes {
            all.push(self.fs.getattr(node).map(|attr| vec![seen(&attr)]));
            all.push(self.list(&root(), node));
            for kind in [AclKind::Access, AclKind::Default] {
                all.push(self.fs.getacl(node, kind).map(|acl| vec![format!("{acl:?}")]));
            }
        }
        all
    }
}

fn acl([owner, user, group_obj, group, mask, other]: [u8; 6]) -> Acl<Disk> {
    let entries = [
        (AclTag::UserObj, owner),
        (AclTag::User(Uid::new(UIDS[1])), user),
        (AclTag::GroupObj, group_obj),
        (AclTag::Group(Gid::new(GIDS[1])), group),
        (AclTag::Mask, mask),
        (AclTag::Other, other),
    ];
    let entry = |(tag, permissions)| AclEntry { tag, permissions };
    Acl { entries: entries.into_iter().map(entry).collect() }
}

/// Does all steps in both file systems; fails at the first step that they do differently.
fn compare(dir: &Path, steps: &[(Cred<Disk>, Step)]) -> std::result::Result<(), TestCaseError> {
    let kernel = Passthrough::open(dir, PassthroughOptions::default()).unwrap();
    let memory = Memory::new(MemoryOptions::default()).unwrap();
    let mut worlds = [&memory as &dyn Fs, &kernel].map(|fs| {
        fs.setattr(&root(), &fs.root(), &mode(0o777), None).unwrap();
        World { fs, nodes: vec![fs.root()] }
    });
    for (number, (cred, step)) in steps.iter().enumerate() {
        let [ours, kernels] = worlds.each_mut().map(|world| world.step(cred, step));
        prop_assert_eq!(ours, kernels, "step {}: {:?} by {:?}", number, step, cred);
        let [ours, kernels] = worlds.each_ref().map(World::whole);
        prop_assert_eq!(ours, kernels, "after step {}: {:?} by {:?}", number, step, cred);
    }
    Ok(())
}

#[test]
fn memory_does_what_the_kernel_does() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root to act under other ids");
        return;
    }
    let cases = std::env::var("DIFFERENTIAL_CASES").ok().and_then(|n| n.parse().ok());
    let config = ProptestConfig {
        cases: cases.unwrap_or(300),
        failure_persistence: None,
        max_shrink_iters: 1_500,
        ..ProptestConfig::default()
    };
    proptest!(config, |(steps in prop::collection::vec((caller(), step()), 1..40))| {
        let dir = tempfile::tempdir().unwrap();
        // The steps run in a separate thread, because the thread takes on the callers' ids.
        thread::scope(|scope| scope.spawn(|| compare(dir.path(), &steps)).join().unwrap())?;
    });
}
