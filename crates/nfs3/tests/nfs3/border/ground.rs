//! A file system whose objects have ids of the server only, behind random maps and with a layer
//! that checks ids.

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{ExportRequest, Plan, Source, Sources, load};
use comity_vfs::{Acl, AclEntry, AclKind, AclTag, Disk, Fs, Gid, Handle, Mode, SetAttr, Uid};

use super::maps::{CLIENT, IDS, Maps, SERVER};
use super::watch::Watched;
use crate::hunt::rng::Rng;
use crate::hunt::twins::{EXPORT, Target, key, planted, root};
use crate::world::still_clock;

const OBJECTS: usize = 12;

pub(crate) struct Ground {
    pub(crate) plan: Plan,
    pub(crate) maps: Maps,
    pub(crate) targets: Vec<Target>,
}

impl Ground {
    /// Returns `None` if the server refuses the maps.
    pub(crate) fn new(rng: &mut Rng) -> Option<Self> {
        let maps = Maps::random(rng);
        let options = MemoryOptions {
            root_mode: Mode::new(0o777),
            root_uid: Uid::new(SERVER),
            root_gid: Gid::new(SERVER + 1),
            clock: still_clock,
            bytes_max: 1 << 26,
            ..MemoryOptions::default()
        };
        let fs = Arc::new(Memory::new(options).unwrap());
        let targets = grown(&fs, rng);
        let text = format!("/srv *(rw,insecure,fsid={EXPORT},{maps})\n");
        let plan = planned(Arc::new(Watched { fs, maps: maps.clone() }), text)?;
        Some(Self { plan, maps, targets })
    }
}

/// The plan of an exports file, or `None` if the server refuses it.
pub(crate) fn planned(fs: Arc<dyn Fs>, text: String) -> Option<Plan> {
    let source = Source::Text { name: "e".into(), text: text.into() };
    let netgroups = "/nonexistent".into();
    let sources = Sources { netgroups, ..Sources::new(vec![source]) };
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&fs));
    load(&sources, &open, key(), None).ok().map(|(plan, _)| plan)
}

pub(crate) fn is_server_id(number: u32) -> bool {
    (SERVER..SERVER + 2 * IDS).contains(&number)
}

/// A random id: usually of a client, sometimes of the server.
pub(crate) fn number(rng: &mut Rng) -> u32 {
    let base = if rng.one_in(4) { SERVER } else { CLIENT };
    base + rng.below(IDS as usize) as u32
}

fn grown(fs: &Memory, rng: &mut Rng) -> Vec<Target> {
    let top = fs.root();
    let (mut dirs, mut targets) = (vec![(top, String::new())], Vec::new());
    let target = |handle: Handle, path: &str, is_directory: bool| Target {
        handles: [handle; 2],
        path: path.to_owned(),
        names: is_directory.then(|| (0..OBJECTS).map(|n| format!("n{n:02}").into()).collect()),
    };
    targets.push(target(top, "", true));
    for number in 0..OBJECTS {
        let (name, kind) = (format!("n{number:02}"), rng.below(8));
        let (dir, path) = rng.pick(&dirs).clone();
        let path = format!("{path}/{name}");
        let set = SetAttr {
            uid: Some(Uid::new(SERVER + rng.below(IDS as usize) as u32)),
            gid: Some(Gid::new(SERVER + rng.below(IDS as usize) as u32)),
            mode: Some(Mode::new(*rng.pick(&[0o777, 0o2777, 0o755, 0o770]))),
            ..SetAttr::default()
        };
        let made = planted(fs, &dir, &name, kind, &set);
        if kind != 3 && rng.one_in(2) {
            fs.setacl(&root(), &made, AclKind::Access, Some(&named(rng))).unwrap();
        }
        targets.push(target(made, &path, kind < 3));
        if kind < 3 {
            dirs.push((made, path));
        }
    }
    targets
}

/// An ACL that names a user and a group of the server.
fn named(rng: &mut Rng) -> Acl<Disk> {
    let mut id = || SERVER + rng.below(IDS as usize) as u32;
    let (user, group) = (AclTag::User(Uid::new(id())), AclTag::Group(Gid::new(id())));
    let tags = [AclTag::UserObj, user, AclTag::GroupObj, group, AclTag::Mask, AclTag::Other];
    Acl { entries: tags.map(|tag| AclEntry { tag, permissions: 7 }).into() }
}
