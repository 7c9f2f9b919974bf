use std::path::Path;

use anyhow::{Context, Result};
use comity_bench::call_templates::{CallTemplates, Expectation, Order, SERIAL_DIGITS, Template};
use comity_bench::fixture_tree::{self, FixtureTree, LARGE_BYTES, SMALL_FILES, WRITTEN_FILES};
use comity_bench::prober::Pages;
use comity_bench::{InSession, Operation, Stable};
use rustix::fs::{Mode, OFlags, RawDir};

use super::wire::{NAME_AT, REPLY_BYTES, REQUEST_BYTES, Request, Verb};

/// Entries of one listing, about what fits in an NFS page of 64 KiB.
const PAGE_ENTRIES: u32 = 333;

/// The calls for an operation.
///
/// # Errors
/// A directory to be listed does not exist.
pub fn script(layout: &FixtureTree, operation: Operation, pages: &Pages) -> Result<CallTemplates> {
    let mut script = CallTemplates::default();
    match operation {
        Operation::Null => script.templates.push(small(Verb::Null, 0)),
        Operation::Getattr | Operation::Access => {
            script.templates = (0..SMALL_FILES).map(|file| small(Verb::Stat, file)).collect();
        }
        Operation::Lookup => {
            script.templates = (0..SMALL_FILES).map(|file| small(Verb::Find, file)).collect();
        }
        Operation::Read(bytes) => {
            let offsets = (0..LARGE_BYTES).step_by(bytes as usize);
            script.templates = offsets.map(|offset| read(offset, bytes)).collect();
        }
        Operation::Write(bytes, stable) => {
            script.templates = writes(bytes, stable);
            script.payload = fixture_tree::content(0, bytes as usize).into();
        }
        Operation::Create => {
            script.templates.push(create(&pages.created));
            script.serial_at = Some(NAME_AT + pages.created.len() + 1);
        }
        Operation::InSession(InSession::Getattr) => {
            script.templates = (0..SMALL_FILES).map(|file| small(Verb::Stat, file)).collect();
        }
        Operation::InSession(InSession::Read(bytes)) => {
            let offsets = (0..LARGE_BYTES).step_by(bytes as usize);
            script.templates = offsets.map(|offset| read(offset, bytes)).collect();
        }
        // No system call belongs to a layout: it is compared with an open, which it follows.
        Operation::InSession(InSession::OpenClose | InSession::Layout(_)) => {
            pairs(&mut script, Verb::Open, Verb::Close);
        }
        Operation::InSession(InSession::LockUnlock) => pairs(&mut script, Verb::Lock, Verb::Unlock),
        Operation::Readdirplus => {
            for name in &pages.listed {
                script.templates.extend(lists(layout.root(), name, Verb::List)?);
            }
        }
    }
    Ok(script)
}

/// Calls that list directories with the handles of their entries, which [`script`] leaves out.
///
/// # Errors
/// A directory does not exist.
pub fn listing_with_handles(layout: &FixtureTree, directories: &[String]) -> Result<CallTemplates> {
    let lists = directories.iter().map(|name| lists(layout.root(), name, Verb::ListHandles));
    let templates = lists.collect::<Result<Vec<_>>>()?.concat();
    Ok(CallTemplates { templates, ..CallTemplates::default() })
}

/// Calls for the attributes of all files of a directory, none of which is open.
#[must_use]
pub fn attributes_by_name(directory: &str, files: usize) -> CallTemplates {
    let of = |number| {
        let name = format!("{directory}/{}", FixtureTree::file(number));
        let name = name.as_bytes();
        template(&Request { verb: Verb::Reach, file: 0, offset: 0, count: 0, name }, 0, 0)
    };
    let templates = (0..files).map(of).collect();
    CallTemplates { templates, ..CallTemplates::default() }
}

fn template(request: &Request<'_>, data: usize, reply_data: usize) -> Template {
    let length = REPLY_BYTES - 4 + reply_data;
    let expect = Expectation { length, head: vec![0; 4], samples: Vec::new() };
    Template { bytes: request.encode(data), expect, units: 1, ..Template::default() }
}

fn small(verb: Verb, file: usize) -> Template {
    let name = FixtureTree::file(file);
    let name = name.as_bytes();
    template(&Request { verb, file: file as u32, offset: 0, count: 0, name }, 0, 0)
}

/// Two calls in turn for each place, with a file for each place.
fn pairs(script: &mut CallTemplates, first: Verb, second: Verb) {
    let pair = |file| [small(first, file), small(second, file)];
    script.templates = (0..SMALL_FILES).flat_map(pair).collect();
    script.order = Order::Own(2);
}

fn read(offset: u64, bytes: u32) -> Template {
    let request = Request { verb: Verb::Read, file: 0, offset, count: bytes, name: b"" };
    let mut template = template(&request, 0, bytes as usize);
    let data = REPLY_BYTES - 4;
    for at in [0, bytes as usize / 2, bytes as usize - 8] {
        let word = fixture_tree::content(offset + at as u64, 8);
        template.expect.samples.extend(word.first_chunk().map(|word| (data + at, *word)));
    }
    template
}

fn writes(bytes: u32, stable: Stable) -> Vec<Template> {
    let verb = if stable == Stable::FileSync { Verb::WriteSync } else { Verb::Write };
    let offsets = (0..LARGE_BYTES).step_by(bytes as usize);
    let places = offsets.flat_map(|offset| (0..WRITTEN_FILES).map(move |file| (offset, file)));
    places
        .map(|(offset, file)| {
            let file = file as u32;
            template(&Request { verb, file, offset, count: bytes, name: b"" }, bytes as usize, 0)
        })
        .collect()
}

fn create(directory: &str) -> Template {
    let name = format!("{directory}/{}", "0".repeat(SERIAL_DIGITS));
    let name = name.as_bytes();
    template(&Request { verb: Verb::Create, file: 0, offset: 0, count: 0, name }, 0, 0)
}

/// The pages of a directory: the start and the number of entries of each.
fn lists(root: &Path, name: &str, verb: Verb) -> Result<Vec<Template>> {
    let path = root.join(name);
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(&path, flags, Mode::empty())
        .with_context(|| path.display().to_string())?;
    let mut buffer = Vec::with_capacity(64 * 1024);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut pages = vec![(0, 0)];
    while let Some(entry) = entries.next() {
        let cookie = entry?.next_entry_cookie();
        let last = pages.len() - 1;
        pages[last].1 += 1;
        if pages[last].1 == PAGE_ENTRIES {
            pages.push((cookie, 0));
        }
    }
    pages.retain(|(_, count)| *count > 0);
    Ok(pages.into_iter().map(|(offset, count)| list(verb, name, offset, count)).collect())
}

fn list(verb: Verb, name: &str, offset: u64, count: u32) -> Template {
    let name = name.as_bytes();
    let request = Request { verb, file: 0, offset, count, name };
    let mut template = template(&request, 0, count as usize * REPLY_BYTES);
    template.units = count;
    template
}

const _: () = assert!(REQUEST_BYTES > NAME_AT + SERIAL_DIGITS);
