//! A file system and two plans that differ in everything and replace each other while clients call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use comity_backend::{Memory, MemoryOptions};
use comity_export::{ExportId, ExportRequest, Exports, HandleKey, Plan, Source, Sources, load};
use comity_vfs::{Create, Cred, Disk, Fs, Gid, Handle, Mode, Name, SetAttr, Uid};

use crate::world::still_clock;

/// The number of files. The plans show their owners under different numbers, and each hides half of
/// them.
pub(crate) const FILES: u32 = 40;

/// The number of clients that call at the same time.
const CLIENTS: usize = 8;

/// The time for which the clients call.
const LASTS: Duration = Duration::from_millis(1500);

/// The user of all clients, and the user that each plan maps it to on disk.
pub(crate) const CALLER: (u32, u32) = (1500, 2500);
const CALLER_ON_DISK: [(u32, u32); 2] = [(50_500, 60_500), (51_500, 61_500)];

/// Two plans with different owners, groups, hidden files and rights.
const PLANS: [&str; 2] = [
    "/srv *(rw,insecure,fsid=1,range_map_uid=1000-1999:50000-50999,\
     range_map_gid=2000-2999:60000-60999,cloak_uid=50000-50019:+000)\n",
    "/srv *(rw,insecure,fsid=1,range_map_uid=1500:51500,range_map_uid=5000-5999:50000-50999,\
     range_map_gid=2500:61500,range_map_gid=6000-6999:60000-60999,cloak_gid=60020-60039:+000)\n",
];

/// A file system with a directory that the plans serve.
pub(crate) struct ReloadedTree {
    fs: Arc<Memory>,
    pub(crate) dir: Handle,
    pub(crate) made: Handle,
}

impl ReloadedTree {
    pub(crate) fn new() -> Self {
        let options = MemoryOptions {
            root_mode: Mode::new(0o777),
            clock: still_clock,
            ..MemoryOptions::default()
        };
        let fs = Arc::new(Memory::new(options).unwrap());
        let open = SetAttr { mode: Some(Mode::new(0o777)), ..SetAttr::default() };
        let folder = |name: &'static [u8]| {
            let name = Name::new(name).unwrap();
            fs.mkdir(&root(), &fs.root(), name, &open).unwrap().value.handle
        };
        let (dir, made) = (folder(b"dir"), folder(b"made"));
        for number in 0..FILES {
            let set = SetAttr {
                uid: Some(Uid::new(50_000 + number)),
                gid: Some(Gid::new(60_000 + number)),
                mode: Some(Mode::new(0o644)),
                ..SetAttr::default()
            };
            let name = format!("file-{number}");
            let name = Name::new(name.as_bytes()).unwrap();
            fs.create(&root(), &dir, name, &Create::Guarded(set)).unwrap();
        }
        Self { fs, dir, made }
    }

    /// One of the two plans.
    pub(crate) fn plan(&self, which: usize) -> Plan {
        let source = Source::Text { name: "exports".into(), text: PLANS[which].into() };
        let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&self.fs) as Arc<dyn Fs>);
        let sources = Sources { netgroups: "/nonexistent".into(), ..Sources::new(vec![source]) };
        let loaded = load(&sources, &open, key(), None);
        loaded.unwrap_or_else(|findings| panic!("{findings:?}")).0
    }

    /// Replaces the plan of `exports` by the first and the second in turn, while [`CLIENTS`]
    /// threads run `client` with their numbers. At the end the second plan is in force; then the
    /// flag is set that `client` gets.
    pub(crate) fn reload(&self, exports: &Exports, client: impl Fn(usize, &AtomicBool) + Sync) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (client, over) = (&client, &over);
                scope.spawn(move || client(number, over));
            }
            let end = Instant::now() + LASTS;
            for turn in (0..2).cycle() {
                exports.replace(self.plan(turn));
                std::thread::sleep(Duration::from_micros(200));
                if turn == 1 && Instant::now() > end {
                    break;
                }
            }
            over.store(true, Ordering::Release);
        });
    }

    /// Asserts that the user and the group of each file that a client made are of the same plan.
    pub(crate) fn check_made(&self) {
        let mut owners = [0; 2];
        let mut visit = |listing: &comity_vfs::Listing<'_, Disk>| {
            let attr = listing.node.unwrap().attr;
            let owner = (attr.uid.number(), attr.gid.number());
            let plan = CALLER_ON_DISK.iter().position(|&one| one == owner);
            owners[plan.unwrap_or_else(|| panic!("made by {owner:?}: of both plans"))] += 1;
            std::ops::ControlFlow::Continue(())
        };
        let nodes = comity_vfs::Listed::Nodes;
        self.fs.readdir(&root(), &self.made, 0, nodes, &mut visit).unwrap();
        assert!(owners.iter().all(|&count| count > 10), "files by plan: {owners:?}");
    }
}

fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

/// A handle as clients see it.
pub(crate) fn sealed(handle: &Handle) -> Vec<u8> {
    key().seal(ExportId(1), handle).bytes().to_vec()
}

fn key() -> HandleKey {
    HandleKey::new([7; 16])
}
