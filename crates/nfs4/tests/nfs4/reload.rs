//! Two plans that differ in everything replace each other while many clients call: each COMPOUND,
//! even a long one, is answered by one plan only.

#[path = "../../../nfs3/tests/nfs3/reload/site.rs"]
mod site;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comity_export::Exports;
use comity_proto::nfs4::{
    CompoundHead, Create4args, Createtype4, NfsFh4, Nfsstat4, Readdir4args, operation as op,
};
use comity_xdr::{Decoder, Encode, Encoder, Opaque};

use self::site::{CALLER, FILES, ReloadedTree, sealed};
use crate::attributes;
use crate::world::World;

/// The number of operations on one file or directory in a COMPOUND.
const TURNS: usize = 6;

#[test]
fn each_compound_is_answered_by_one_plan_while_plans_are_replaced() {
    let site = ReloadedTree::new();
    let calls = calls(&site);
    let answers: Vec<[Vec<u8>; 2]> = calls
        .iter()
        .map(|call| {
            [0, 1].map(|which| ask(&world(&Arc::new(Exports::new(site.plan(which)))), call))
        })
        .collect();
    assert!(answers.iter().all(|[one, other]| one != other), "the plans must differ");
    let exports = Arc::new(Exports::new(site.plan(0)));
    let seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let made = sealed(&site.made);
    site.reload(&exports, |number, over| {
        let world = world(&exports);
        let judge = |at: usize| {
            let reply = ask(&world, &calls[at]);
            let plan = answers[at].iter().position(|answer| *answer == reply);
            plan.unwrap_or_else(|| panic!("COMPOUND {at} is of neither plan: {reply:x?}"))
        };
        let mut round = 0;
        while !over.load(Ordering::Acquire) {
            make(&world, &made, &format!("{number}-{round}"));
            for at in 0..calls.len() {
                seen[judge(at)].fetch_add(1, Ordering::Relaxed);
            }
            round += 1;
        }
        assert!((0..calls.len()).all(|at| judge(at) == 1), "the last plan is in force");
    });
    let seen = seen.map(AtomicUsize::into_inner);
    assert!(seen.iter().all(|&count| count > 50), "both plans were met: {seen:?}");
    site.check_made();
}

/// Operations and their number.
struct Call(Encoder, u32);

impl Call {
    fn new() -> Self {
        Self(Encoder::new(), 0)
    }

    /// Appends PUTFH, at which the caller is admitted.
    fn at(self, handle: &[u8]) -> Self {
        let handle: NfsFh4<'_> = Opaque(handle);
        self.op(op::PUTFH, &handle)
    }

    fn op(mut self, number: u32, arguments: &impl Encode) -> Self {
        self.0.value(&number);
        self.0.value(arguments);
        self.1 += 1;
        self
    }
}

/// Returns one call with many listings, and calls that use files one after another. Such a call
/// ends at the first file that the plan in force hides.
fn calls(site: &ReloadedTree) -> Vec<Call> {
    let dir = sealed(&site.dir);
    let attr_request = attributes::bitmap(&["owner", "owner_group"]);
    let (cookie, cookieverf, dircount, maxcount) = (0, [0; 8], 0, 1 << 16);
    let args = Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request };
    let listing = (0..TURNS).fold(Call::new(), |call, _| call.at(&dir).op(op::READDIR, &args));
    let file = |call: Call, number: u32| {
        let name = format!("file-{number}");
        let call = call.at(&dir).op(op::LOOKUP, &Opaque::<4096>(name.as_bytes()));
        call.op(op::GETATTR, &attr_request).op(op::ACCESS, &0x3f_u32)
    };
    let files =
        |numbers: [u32; 4]| numbers.into_iter().fold(Call::new(), file).op(op::READDIR, &args);
    let half = FILES / 2;
    // Each plan hides one half of the files.
    let both = (0..half).flat_map(|n| [files([n; 4]), files([n + half; 4])]);
    [listing].into_iter().chain(both).collect()
}

fn world(exports: &Arc<Exports>) -> World {
    let world = World::at(exports);
    world.act_as(CALLER.0, CALLER.1, &[]);
    world
}

fn ask(world: &World, Call(operations, count): &Call) -> Vec<u8> {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 0, operations: *count });
    call.raw(operations.bytes());
    world.compound(call.bytes()).0
}

fn make(world: &World, dir: &[u8], name: &str) {
    let none = attributes::encode(&[]);
    let createattrs = Decoder::whole(&none).unwrap();
    let objname = Opaque(name.as_bytes());
    let args = Create4args { objtype: Createtype4::Dir, objname, createattrs };
    let reply = ask(world, &Call::new().at(dir).op(op::CREATE, &args));
    assert_eq!(Decoder::new(&reply).value(), Ok(Nfsstat4::Ok), "{reply:x?}");
}
