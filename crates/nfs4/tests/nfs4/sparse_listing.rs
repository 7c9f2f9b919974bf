//! READDIR of a directory with thousands of entries that are hidden from the caller.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::Exports;
use comity_export::limits::LISTING_ENTRIES_MAX;
use comity_proto::nfs4::{
    Bitmap4, CompoundHead, CompoundResultHead, Entry4, NfsFh4, Nfsstat4, Readdir4args, Verifier4,
    attribute as a, operation as op,
};
use comity_vfs::{Fs, Mode, SetAttr, Uid};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::hunt::twins::{EXPORT, plan, planted, sealed};
use crate::world::World;

const OPTIONS: &str = "rw,insecure,cloak_uid=500:+000";

struct Page {
    names: Vec<Vec<u8>>,
    cookie: u64,
    eof: bool,
}

/// A directory with a visible name before each of these numbers of hidden ones.
fn sparse(parts: &[usize]) -> (World, Vec<u8>) {
    let memory = Memory::new(MemoryOptions { root_mode: Mode::new(0o777), ..Default::default() });
    let fs: Arc<dyn Fs> = Arc::new(memory.unwrap());
    let owned = |uid| SetAttr { uid: Some(Uid::new(uid)), ..SetAttr::default() };
    for (part, between) in parts.iter().enumerate() {
        planted(&*fs, &fs.root(), &format!("visible{part}"), 4, &owned(7));
        for hidden in 0..*between {
            planted(&*fs, &fs.root(), &format!("h{part}-{hidden}"), 4, &owned(500));
        }
    }
    let root = sealed(&fs.root());
    let world = World::of(plan(&fs, &format!("{OPTIONS},fsid={EXPORT}")));
    world.act_as(7, 7, &[]);
    (world, root)
}

fn page(world: &World, dir: &[u8], cookie: u64, attr_request: Bitmap4) -> Page {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 0, operations: 2 });
    call.value(&op::PUTFH);
    call.value::<NfsFh4<'_>>(&Opaque(dir));
    call.value(&op::READDIR);
    let (cookieverf, dircount, maxcount) = ([0; 8], 0, 4096);
    call.value(&Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request });
    let (answer, _) = world.compound(call.bytes());
    let mut decoder = Decoder::new(&answer);
    let head: CompoundResultHead<'_> = decoder.value().unwrap();
    assert_eq!(head.status, Nfsstat4::Ok);
    // Skips the numbers and statuses of PUTFH, which has no body, and READDIR.
    decoder.fixed(16).unwrap();
    decoder.value::<Verifier4>().unwrap();
    let mut page = Page { names: Vec::new(), cookie, eof: false };
    while decoder.value().unwrap() {
        let Entry4 { name, cookie } = decoder.value().unwrap();
        page.names.push(name.0.to_vec());
        page.cookie = cookie;
        decoder.value::<Bitmap4>().unwrap();
        decoder.value::<Opaque<'_, 4096>>().unwrap();
    }
    page.eof = decoder.value().unwrap();
    page
}

fn hidden(exports: &Exports) -> usize {
    let plan = exports.current();
    let tallies = plan.exports().iter().flat_map(|one| one.counters());
    tallies.map(|tally| tally.counts().hidden as usize).sum()
}

#[test]
fn a_page_with_entries_ends_after_a_number_of_hidden_ones() {
    let (world, root) = sparse(&[LISTING_ENTRIES_MAX + 100; 3]);
    for wanted in [Bitmap4::EMPTY, Bitmap4::of(&[a::TYPE, a::SIZE])] {
        let (mut names, mut cookie, mut eof) = (Vec::new(), 0, false);
        while !eof {
            let before = hidden(&world.exports);
            let page = page(&world, &root, cookie, wanted);
            let looked_at = hidden(&world.exports) - before;
            assert!(page.eof || !page.names.is_empty(), "a page that is not the last one is empty");
            assert!(looked_at <= 2 * LISTING_ENTRIES_MAX, "{looked_at} behind {cookie}");
            assert!(cookie != 0 || looked_at <= LISTING_ENTRIES_MAX, "{looked_at} at first");
            names.extend(page.names);
            (cookie, eof) = (page.cookie, page.eof);
        }
        assert_eq!(names, [b"visible0", b"visible1", b"visible2"]);
    }
}

thread_local! {
    static EXPORTS: RefCell<Option<Arc<Exports>>> = const { RefCell::new(None) };
    /// The number of calls of the hook, and of entries that were hidden in them.
    static AWAY: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// A hook that counts the hidden entries which are looked at in it.
fn away(work: &mut dyn FnMut()) {
    let exports = EXPORTS.with_borrow(|exports| exports.clone()).unwrap();
    let before = hidden(&exports);
    work();
    let (calls, entries) = AWAY.get();
    AWAY.set((calls + 1, entries + hidden(&exports) - before));
}

#[test]
fn a_page_that_shows_nothing_yet_leaves_its_event_loop_once_for_the_rest() {
    let (world, root) = sparse(&[3 * LISTING_ENTRIES_MAX]);
    EXPORTS.set(Some(Arc::clone(&world.exports)));
    let world = world.blocking(away);
    for wanted in [Bitmap4::EMPTY, Bitmap4::of(&[a::TYPE, a::SIZE])] {
        let first = page(&world, &root, 0, wanted);
        assert_eq!((first.names.len(), first.eof, AWAY.get()), (1, false, (0, 0)));
        let before = hidden(&world.exports);
        let page = page(&world, &root, first.cookie, wanted);
        let looked_at = hidden(&world.exports) - before;
        let (calls, away) = AWAY.replace((0, 0));
        assert!(page.eof && page.names.is_empty());
        assert_eq!(looked_at, 3 * LISTING_ENTRIES_MAX);
        assert_eq!((looked_at - away, calls), (LISTING_ENTRIES_MAX, 1));
    }
}
