//! READDIR and READDIRPLUS of random directories with random limits: every entry is returned once,
//! and no reply is longer than the count.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::Exports;
use comity_export::limits::LISTING_ENTRIES_MAX;
use comity_proto::nfs3::{
    Create3args, Createhow3, DirlistHead, Diropargs3, Entry3, Entryplus3, Nfsstat3, Readdir3args,
    Readdirplus3args, Sattr3, procedure,
};
use comity_vfs::{Fs, Mode, SetAttr, Uid};
use comity_xdr::{Decoder, Opaque};
use proptest::prelude::*;

use crate::hunt::twins::{EXPORT, plan, planted, sealed};
use crate::world::{Ground, World};

/// The bytes of a result other than entries: attributes, verifier, the end of the list, eof.
const AROUND: usize = 88 + 8 + 4 + 4;

struct Page {
    names: Vec<Vec<u8>>,
    cookie: u64,
    eof: bool,
    /// The bytes of the result after the status.
    bytes: usize,
    /// The bytes of fileids, names and cookies.
    names_bytes: usize,
}

/// Reads a page; returns `None` if the limits are too small for one.
fn page(body: &[u8], plus: bool) -> Option<Page> {
    let mut decoder = Decoder::new(body);
    if decoder.value::<Nfsstat3>().unwrap() == Nfsstat3::TooSmall {
        return None;
    }
    let bytes = decoder.rest().len();
    decoder.value::<DirlistHead>().unwrap();
    let mut page = Page { names: Vec::new(), cookie: 0, eof: false, bytes, names_bytes: 0 };
    while decoder.value::<bool>().unwrap() {
        let entry: Entry3<'_> = match plus {
            true => decoder.value::<Entryplus3<'_>>().unwrap().entry,
            false => decoder.value().unwrap(),
        };
        page.names_bytes += 8 + 4 + entry.name.0.len().next_multiple_of(4) + 8;
        page.names.push(entry.name.0.to_vec());
        page.cookie = entry.cookie;
    }
    page.eof = decoder.value().unwrap();
    decoder.finish().unwrap();
    Some(page)
}

fn filled(names: &BTreeSet<Vec<u8>>) -> World {
    let mut ground = Ground::default();
    ground.rules.sync = false;
    let world = World::new(ground);
    for name in names {
        let place = Diropargs3 { dir: Opaque(&world.root), name: Opaque(name) };
        let how = Createhow3::Guarded(Sattr3::default());
        world.call(procedure::CREATE, &Create3args { place, how });
    }
    world
}

fn ask(world: &World, cookie: u64, limits: Limits) -> Option<Page> {
    ask_at(world, &world.root, cookie, limits)
}

fn ask_at(world: &World, dir: &[u8], cookie: u64, limits: Limits) -> Option<Page> {
    let (dir, cookieverf) = (Opaque(dir), [0; 8]);
    let Limits { dircount, count } = limits;
    match dircount {
        None => {
            let arguments = Readdir3args { dir, cookie, cookieverf, count };
            page(&world.call(procedure::READDIR, &arguments), false)
        }
        Some(dircount) => {
            let arguments = Readdirplus3args { dir, cookie, cookieverf, dircount, maxcount: count };
            page(&world.call(procedure::READDIRPLUS, &arguments), true)
        }
    }
}

/// The limits of a call. A `dircount` makes it a READDIRPLUS.
#[derive(Debug, Clone, Copy)]
struct Limits {
    dircount: Option<u32>,
    count: u32,
}

fn limits() -> impl Strategy<Value = Limits> {
    let dircount = proptest::option::of(0..600_u32);
    (dircount, 0..3_000_u32).prop_map(|(dircount, count)| Limits { dircount, count })
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("letters of names", |byte| !matches!(byte, 0 | b'/' | b'.'));
    proptest::collection::vec(byte, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_entry_once_and_never_above_the_count(
        names in proptest::collection::btree_set(name(), 0..60),
        turns in proptest::collection::vec(limits(), 1..8),
    ) {
        let world = filled(&names);
        let (mut seen, mut cookie) = (Vec::new(), 0);
        for turn in 0.. {
            prop_assert!(turn < 20_000, "no end");
            // The last calls have limits that are large enough for any entry.
            let wide = Limits { dircount: None, count: 400 };
            let limits = *turns.get(turn).unwrap_or(&wide);
            let Some(page) = ask(&world, cookie, limits) else { continue };
            prop_assert!(page.bytes <= limits.count as usize);
            let names_max = limits.dircount.map_or(usize::MAX, |dircount| dircount as usize);
            prop_assert!(page.names_bytes <= names_max || page.names.len() == 1);
            prop_assert!(page.eof || !page.names.is_empty(), "an empty page is not the last one");
            seen.extend(page.names);
            if page.eof {
                break;
            }
            cookie = page.cookie;
        }
        let mut expected: Vec<Vec<u8>> = names.into_iter().collect();
        expected.extend([b".".to_vec(), b"..".to_vec()]);
        seen.sort();
        expected.sort();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn a_page_is_as_full_as_it_may_be() {
    let names: BTreeSet<Vec<u8>> = (0..10).map(|n| format!("f{n}").into_bytes()).collect();
    let world = filled(&names);
    for entries in 1..=12 {
        let exact = AROUND + entries * 28;
        for (count, expected) in
            [(exact, entries), (exact + 27, entries), (exact + 28, 12.min(entries + 1))]
        {
            let page = ask(&world, 0, Limits { dircount: None, count: count as u32 }).unwrap();
            assert_eq!(page.names.len(), expected, "{count} bytes");
            assert_eq!(page.eof, expected == 12);
        }
    }
}

#[test]
fn a_huge_count_is_cut_down() {
    let long = |number| {
        let mut name = format!("{number}-").into_bytes();
        name.resize(200, b'x');
        name
    };
    let names: BTreeSet<Vec<u8>> = (0..1500).map(long).collect();
    let world = filled(&names);
    let max = comity_nfs3::limits::LISTING_BYTES_MAX as usize;
    let page = ask(&world, 0, Limits { dircount: Some(u32::MAX), count: u32::MAX }).unwrap();
    assert!(page.bytes <= max && page.bytes > max - 512 && !page.eof, "{} bytes", page.bytes);
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
    let world = World::of(plan(&fs, &format!("rw,insecure,fsid={EXPORT},cloak_uid=500:+000")));
    world.act_as(7, 7, &[]);
    (world, root)
}

/// The number of entries that have been hidden from all callers so far.
fn hidden(exports: &Exports) -> u64 {
    let plan = exports.current();
    plan.exports().iter().flat_map(|one| one.counters()).map(|tally| tally.counts().hidden).sum()
}

#[test]
fn a_page_with_entries_ends_after_a_number_of_hidden_ones() {
    let (world, root) = sparse(&[LISTING_ENTRIES_MAX + 100; 3]);
    for limits in
        [Limits { dircount: None, count: 4096 }, Limits { dircount: Some(4096), count: 4096 }]
    {
        let (mut names, mut cookie) = (Vec::new(), 0);
        loop {
            let before = hidden(&world.exports);
            let page = ask_at(&world, &root, cookie, limits).unwrap();
            let looked_at = (hidden(&world.exports) - before) as usize;
            assert!(page.eof || !page.names.is_empty(), "a page that is not the last one is empty");
            assert!(looked_at <= 2 * LISTING_ENTRIES_MAX, "{looked_at} behind {cookie}");
            assert!(cookie != 0 || looked_at <= LISTING_ENTRIES_MAX, "{looked_at} at first");
            names.extend(page.names);
            cookie = page.cookie;
            if page.eof {
                break;
            }
        }
        assert_eq!(names, [&b"."[..], b"..", b"visible0", b"visible1", b"visible2"]);
    }
}

thread_local! {
    static EXPORTS: RefCell<Option<Arc<Exports>>> = const { RefCell::new(None) };
    /// The number of calls of the hook, and of entries that were hidden in them.
    static AWAY: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
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
    for dircount in [None, Some(4096)] {
        let limits = Limits { dircount, count: 4096 };
        let first = ask_at(&world, &root, 0, limits).unwrap();
        assert_eq!((first.names.len(), first.eof, AWAY.get()), (3, false, (0, 0)));
        let before = hidden(&world.exports);
        let page = ask_at(&world, &root, first.cookie, limits).unwrap();
        let looked_at = hidden(&world.exports) - before;
        let (calls, away) = AWAY.replace((0, 0));
        assert!(page.eof && page.names.is_empty());
        assert_eq!(looked_at, 3 * LISTING_ENTRIES_MAX as u64);
        assert_eq!((looked_at - away, calls), (LISTING_ENTRIES_MAX as u64, 1));
    }
}
