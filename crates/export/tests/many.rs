//! A configuration of a hundred thousand ranges is read, checked and put into a plan in bounded
//! time.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_backend::{Memory, MemoryOptions};
use comity_export::{Diagnostic, ExportRequest, HandleKey, Plan, Source, Sources, load};
use comity_vfs::Fs;

const ENTRIES: u32 = 100_000;

/// With this count, code whose time grows with the square would take minutes.
const MISTAKES: u32 = 20_000;

/// Longest time allowed on a slow and busy machine without optimization. Optimized code takes a
/// fraction of a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

type Loaded = Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>>;

/// A domain with lists of ranges and cloaks, a line each.
fn loaded(what: &str, ranges: &str, cloaks: &str) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.toml");
    let text = format!(
        "[[domain]]\nname = \"many\"\nclients = [\"10.0.0.0/8\", \"192.0.2.0/24\"]\n\
         groups = [\"0-4294967294:65534\"]\nusers = [\n{ranges}]\ncloaks = [\n{cloaks}]\n\
         options = [\"no_client_cache\"]\n[[export]]\npath = \"/srv\"\ndomains = [\"many\"]\n"
    );
    std::fs::write(&path, text).unwrap();
    let netgroups = "/nonexistent".into();
    let sources = Sources { netgroups, ..Sources::new(vec![Source::Config(path)]) };
    let fs = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&fs) as Arc<dyn Fs>);
    let begun = Instant::now();
    let loaded = load(&sources, &open, HandleKey::new([3; 16]), None);
    println!("{what}: {:?}", begun.elapsed());
    assert!(begun.elapsed() < PATIENCE, "{what} took {:?}", begun.elapsed());
    loaded
}

fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "\"{}\",", line(number)).unwrap();
        text
    })
}

#[test]
fn a_file_of_a_hundred_thousand_ranges_is_loaded_in_bounded_time() {
    // Every other id, so that no two ranges can be merged.
    let ranges = lines(ENTRIES, |n| format!("{}:{}", 2 * n + 1000, 4_000_000 - 2 * n));
    let (plan, _) = loaded("ranges", &ranges, "").unwrap_or_else(|found| panic!("{:?}", found[0]));
    let (_, rules) = &plan.exports()[0].clients()[0];
    assert_eq!(rules.ids.users.rules().len(), ENTRIES as usize);
}

#[test]
fn ranges_that_never_apply_are_found_in_bounded_time() {
    let same = lines(MISTAKES, |_| "1000-2000:5000-6000".into());
    let (_, found) = loaded("the same range", &same, "").unwrap();
    assert!(found.len() >= 1000, "{} findings", found.len());
    let single = lines(MISTAKES / 2, |n| format!("{}:{}", 2 * n, 9_000_000 + n));
    let wide = lines(MISTAKES / 2, |_| "0-100000:20000000-20100000".into());
    let (_, found) = loaded("wide ranges over many", &(single + &wide), "").unwrap();
    assert!(found.len() >= 1000, "{} findings", found.len());
}

#[test]
fn ranges_that_cannot_be_told_apart_are_found_in_bounded_time() {
    let one = lines(MISTAKES, |n| format!("{}:7", 2 * n));
    assert!(loaded("all to one id", &one, "").is_err());
}

#[test]
fn cloaks_that_never_apply_are_found_in_bounded_time() {
    let cloaks = lines(MISTAKES, |n| format!("uid={}:+000", 2 * (n % (MISTAKES / 2))));
    let (_, found) = loaded("cloaks", "", &cloaks).unwrap();
    assert!(found.len() >= 1000, "{} findings", found.len());
}
