//! Plans that differ in everything take turns while many clients call: each reply is the answer of
//! one of them, whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use comity_backend::{Memory, MemoryOptions};
use comity_export::{ExportRequest, Exports, HandleKey, Plan, Source, Sources, load};
use comity_proto::nfs3::{
    Access3args, Create3args, Createhow3, Diropargs3, Readdir3args, Readdirplus3args, Sattr3,
    procedure,
};
use comity_vfs::{Create, Cred, Disk, Fs, Gid, Handle, Mode, Name, SetAttr, Uid};
use comity_xdr::Opaque;

use crate::world::{World, encoded, still_clock};

/// Files whose owners the plans show under other numbers, half of them hidden by each.
const FILES: u32 = 40;

/// Clients at once.
const CLIENTS: usize = 8;

/// How long they call.
const LASTS: Duration = Duration::from_millis(1500);

/// Who all clients are, and who that is on disk by each plan.
const CALLER: (u32, u32) = (1500, 2500);
const CALLER_ON_DISK: [(u32, u32); 2] = [(50_500, 60_500), (51_500, 61_500)];

/// Two plans: other owners, other groups, other files hidden, other rights.
const PLANS: [&str; 2] = [
    "/srv *(rw,insecure,fsid=1,range_map_uid=1000-1999:50000-50999,\
     range_map_gid=2000-2999:60000-60999,cloak_uid=50000-50019:+000)\n",
    "/srv *(rw,insecure,fsid=1,range_map_uid=1500:51500,range_map_uid=5000-5999:50000-50999,\
     range_map_gid=2500:61500,range_map_gid=6000-6999:60000-60999,cloak_gid=60020-60039:+000)\n",
];

/// A call: its procedure and arguments.
type Asked = (u32, Vec<u8>);

#[test]
fn while_plans_change_each_call_is_judged_by_one_of_them_whole() {
    let site = Site::new();
    let calls = site.calls();
    let answers: Vec<[Vec<u8>; 2]> = calls.iter().map(|call| site.answers(call)).collect();
    for ([one, other], call) in answers.iter().zip(&calls) {
        assert_ne!(one, other, "the plans must differ for procedure {}", call.0);
    }
    let exports = Arc::new(Exports::new(site.plan(0)));
    let (over, seen) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let client = Client { number, world: World::at(&exports), answers: &answers };
            let (calls, over, seen) = (&calls, &over, &seen);
            scope.spawn(move || client.call_until(over, calls, seen));
        }
        let end = Instant::now() + LASTS;
        for turn in (0..2).cycle() {
            exports.replace(site.plan(turn));
            std::thread::sleep(Duration::from_micros(200));
            if turn == 1 && Instant::now() > end {
                break;
            }
        }
        over.store(true, Ordering::Release);
    });
    let seen = seen.map(AtomicUsize::into_inner);
    assert!(seen.iter().all(|&count| count > 100), "both plans were met: {seen:?}");
    site.check_made();
}

/// A file system and what it is served under.
struct Site {
    fs: Arc<Memory>,
    made: Handle,
}

impl Site {
    fn new() -> Self {
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
        Self { fs, made }
    }

    fn plan(&self, which: usize) -> Plan {
        let source = Source::Text { name: "exports".into(), text: PLANS[which].into() };
        let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&self.fs) as Arc<dyn Fs>);
        let sources = Sources { netgroups: "/nonexistent".into(), ..Sources::new(vec![source]) };
        let loaded = load(&sources, &open, HandleKey::new([7; 16]), None);
        loaded.unwrap_or_else(|findings| panic!("{findings:?}")).0
    }

    /// What a client that sees everything would ask for.
    fn calls(&self) -> Vec<Asked> {
        let worlds = [0, 1].map(|which| entered(&Arc::new(Exports::new(self.plan(which)))));
        let dir = worlds[0].find(&worlds[0].mount("/srv"), "dir").unwrap();
        let (names, whole) = (procedure::READDIR, procedure::READDIRPLUS);
        let (cookie, cookieverf, count) = (0, [0; 8], 1 << 16);
        let args = Readdir3args { dir: Opaque(&dir), cookie, cookieverf, count };
        let mut calls = vec![(names, encoded(&args))];
        let (dircount, maxcount) = (count, count);
        let args = Readdirplus3args { dir: Opaque(&dir), cookie, cookieverf, dircount, maxcount };
        calls.push((whole, encoded(&args)));
        for number in 0..FILES {
            let name = format!("file-{number}");
            let file = worlds.iter().find_map(|world| world.find(&dir, &name)).unwrap();
            let object = Opaque(&file[..]);
            calls.push((procedure::GETATTR, encoded(&object)));
            calls.push((procedure::ACCESS, encoded(&Access3args { object, access: 0x3f })));
            let place = Diropargs3 { dir: Opaque(&dir), name: Opaque(name.as_bytes()) };
            calls.push((procedure::LOOKUP, encoded(&place)));
        }
        calls
    }

    /// What each plan answers.
    fn answers(&self, (procedure, arguments): &Asked) -> [Vec<u8>; 2] {
        [0, 1].map(|which| {
            let world = entered(&Arc::new(Exports::new(self.plan(which))));
            world.ask(*procedure, arguments)
        })
    }

    /// What the clients have made belongs to the user and the group of one plan.
    fn check_made(&self) {
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

/// The caller at a server.
fn entered(exports: &Arc<Exports>) -> World {
    let world = World::at(exports);
    world.act_as(CALLER.0, CALLER.1, &[]);
    world
}

/// One connection.
struct Client<'a> {
    number: usize,
    world: World,
    answers: &'a [[Vec<u8>; 2]],
}

impl Client<'_> {
    fn call_until(&self, over: &AtomicBool, calls: &[Asked], seen: &[AtomicUsize; 2]) {
        self.world.act_as(CALLER.0, CALLER.1, &[]);
        let made = self.world.find(&self.world.mount("/srv"), "made").unwrap();
        let mut round = 0;
        while !over.load(Ordering::Acquire) {
            self.make(&made, round);
            for (at, call) in calls.iter().enumerate() {
                let plan = self.judge(at, call);
                seen[plan].fetch_add(1, Ordering::Relaxed);
            }
            round += 1;
        }
        for (at, call) in calls.iter().enumerate() {
            assert_eq!(self.judge(at, call), 1, "the last plan is in force");
        }
    }

    /// By which plan a call is answered.
    fn judge(&self, at: usize, (procedure, arguments): &Asked) -> usize {
        let reply = self.world.ask(*procedure, arguments);
        let plan = self.answers[at].iter().position(|answer| *answer == reply);
        plan.unwrap_or_else(|| {
            panic!("call {at}, procedure {procedure}: of both plans: {reply:x?}")
        })
    }

    fn make(&self, dir: &[u8], round: usize) {
        let name = format!("{}-{round}", self.number);
        let place = Diropargs3 { dir: Opaque(dir), name: Opaque(name.as_bytes()) };
        let how = Createhow3::Guarded(Sattr3::default());
        let body = self.world.call(procedure::CREATE, &Create3args { place, how });
        assert!(body.starts_with(&[0; 4]), "CREATE fails: {body:x?}");
    }
}
