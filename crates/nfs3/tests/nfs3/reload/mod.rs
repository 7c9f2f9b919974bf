//! Two plans that differ in everything replace each other while many clients call: each reply is
//! wholly that of one plan.

pub(crate) mod site;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use comity_export::Exports;
use comity_proto::nfs3::{
    Access3args, Create3args, Createhow3, Diropargs3, Readdir3args, Readdirplus3args, Sattr3,
    procedure,
};
use comity_xdr::Opaque;

use self::site::{CALLER, FILES, ReloadedTree, sealed};
use crate::world::{World, encoded};

/// A call: its procedure and arguments.
type Asked = (u32, Vec<u8>);

#[test]
fn each_call_is_answered_by_one_plan_while_plans_are_replaced() {
    let site = ReloadedTree::new();
    let calls = site.calls();
    let answers: Vec<[Vec<u8>; 2]> = calls.iter().map(|call| site.answers(call)).collect();
    for ([one, other], call) in answers.iter().zip(&calls) {
        assert_ne!(one, other, "the plans must differ for procedure {}", call.0);
    }
    let exports = Arc::new(Exports::new(site.plan(0)));
    let seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
    site.reload(&exports, |number, over| {
        let client = Client { number, world: World::at(&exports), answers: &answers };
        client.call_until(over, &calls, &seen);
    });
    let seen = seen.map(AtomicUsize::into_inner);
    assert!(seen.iter().all(|&count| count > 100), "both plans were met: {seen:?}");
    site.check_made();
}

impl ReloadedTree {
    /// The calls of a client, for all objects.
    fn calls(&self) -> Vec<Asked> {
        let worlds = [0, 1].map(|which| entered(&Arc::new(Exports::new(self.plan(which)))));
        let dir = sealed(&self.dir);
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

    /// The answers to a call, one for each plan.
    fn answers(&self, (procedure, arguments): &Asked) -> [Vec<u8>; 2] {
        [0, 1].map(|which| {
            let world = entered(&Arc::new(Exports::new(self.plan(which))));
            world.ask(*procedure, arguments)
        })
    }
}

/// The caller on a server.
fn entered(exports: &Arc<Exports>) -> World {
    let world = World::at(exports);
    world.act_as(CALLER.0, CALLER.1, &[]);
    world
}

/// One connection of the caller.
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

    /// Returns the index of the plan whose answer the call gets.
    fn judge(&self, at: usize, (procedure, arguments): &Asked) -> usize {
        let reply = self.world.ask(*procedure, arguments);
        let plan = self.answers[at].iter().position(|answer| *answer == reply);
        plan.unwrap_or_else(|| {
            panic!("call {at}, procedure {procedure}: the answer is of neither plan: {reply:x?}")
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
