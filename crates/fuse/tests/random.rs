//! Random reads and writes of a file through a mount, compared with a copy in memory, in the manner
//! of fsx (Apple, 1991).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use comity_cache::WriteMode;
use comity_vfs::{Cred, Fs, Gid, Name, SplitMix64, Uid};
use rustix::fs::FallocateFlags;

use common::{cached, can_mount, kept, memory, mount, passthrough};

const LENGTH_MAX: u64 = 256 << 10;
const STEPS: u32 = 1_500;

/// A file, and its expected content.
struct Pair {
    path: PathBuf,
    file: File,
    model: Vec<u8>,
    numbers: SplitMix64,
}

impl Pair {
    fn new(path: PathBuf, seed: u64) -> Self {
        Self { file: open(&path), path, model: Vec::new(), numbers: SplitMix64::new(seed) }
    }

    fn step(&mut self) {
        let offset = self.numbers.below(LENGTH_MAX);
        let length = 1 + self.numbers.below(20_000.min(LENGTH_MAX - offset).max(1));
        match self.numbers.below(9) {
            0..=2 => self.write(offset, length),
            3 | 4 => self.read(offset, length),
            5 => self.cut(offset),
            6 => self.punch(offset, length),
            7 => self.copy(offset, length),
            _ => self.file = open(&self.path),
        }
        assert_eq!(self.file.metadata().unwrap().len(), self.model.len() as u64);
    }

    fn extend(&mut self, end: u64) {
        if self.model.len() < end as usize {
            self.model.resize(end as usize, 0);
        }
    }

    fn write(&mut self, offset: u64, length: u64) {
        let byte = 1 + self.numbers.below(255) as u8;
        let data = vec![byte; length as usize];
        self.file.write_all_at(&data, offset).unwrap();
        self.extend(offset + length);
        self.model[offset as usize..][..length as usize].copy_from_slice(&data);
    }

    fn read(&mut self, offset: u64, length: u64) {
        let mut data = vec![0; length as usize];
        let count = self.file.read_at(&mut data, offset).unwrap();
        let start = (offset as usize).min(self.model.len());
        let end = (start + length as usize).min(self.model.len());
        assert_eq!(count, end - start);
        assert!(data[..count] == self.model[start..end], "at {offset}, {length} bytes");
    }

    fn cut(&mut self, length: u64) {
        self.file.set_len(length).unwrap();
        self.model.resize(length as usize, 0);
    }

    fn punch(&mut self, offset: u64, length: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, length).unwrap();
        let end = self.model.len();
        let range = (offset as usize).min(end)..((offset + length) as usize).min(end);
        self.model[range].fill(0);
    }

    fn copy(&mut self, from: u64, length: u64) {
        let to = self.numbers.below(LENGTH_MAX - length);
        let length = length.min((self.model.len() as u64).saturating_sub(from));
        if length == 0 || from.abs_diff(to) < length {
            return;
        }
        let (mut source, mut target) = (from, to);
        let file = &self.file;
        let count = length as usize;
        let copied =
            rustix::fs::copy_file_range(file, Some(&mut source), file, Some(&mut target), count);
        let copied = copied.unwrap() as u64;
        self.extend(to + copied);
        self.model.copy_within(from as usize..(from + copied) as usize, to as usize);
    }
}

/// Another client of the lower file system changes a part of the file while it is closed here.
fn change_elsewhere(pair: &mut Pair, below: &dyn Fs, name: &str) {
    let root = Cred::new(Uid::new(0), Gid::new(0));
    let found = below.lookup(&root, &below.root(), Name::new(name.as_bytes()).unwrap()).unwrap();
    // Cached data is written first, because only close-to-open consistency is promised.
    pair.file.sync_all().unwrap();
    let offset = pair.numbers.below(LENGTH_MAX);
    let data = vec![pair.numbers.below(256) as u8; 3_000];
    let written = below.write(&root, &found.node.handle, offset, &data).unwrap();
    assert_eq!(written.value as usize, data.len());
    pair.extend(offset + data.len() as u64);
    pair.model[offset as usize..][..data.len()].copy_from_slice(&data);
    pair.file = open(&pair.path);
}

fn run_with_another(write: WriteMode, seed: u64) {
    let (folder, below) = (tempfile::tempdir().unwrap(), memory());
    let cache = cached(Arc::clone(&below), folder.path(), write);
    let mounted = mount(cache.clone(), kept(Duration::ZERO));
    let mut pair = Pair::new(mounted.dir.join("file"), seed);
    for step in 0..STEPS {
        pair.step();
        match step % 50 {
            13 => cache.tick(),
            37 => change_elsewhere(&mut pair, below.as_ref(), "file"),
            _ => {}
        }
    }
    assert!(std::fs::read(&pair.path).unwrap() == pair.model);
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn run(dir: &Path, seed: u64) {
    let mut pair = Pair::new(dir.join(format!("file-{seed}")), seed);
    for _ in 0..STEPS {
        pair.step();
    }
    assert!(std::fs::read(&pair.path).unwrap() == pair.model);
}

#[test]
fn a_file_in_memory_is_what_was_written_to_it() {
    if can_mount() {
        for (seed, keep) in [(1, 0), (2, 60)] {
            run(&mount(memory(), kept(Duration::from_secs(keep))).dir, seed);
        }
    }
}

#[test]
fn a_file_of_a_folder_is_what_was_written_to_it() {
    if can_mount() {
        let folder = tempfile::tempdir().unwrap();
        for (seed, keep) in [(3, 0), (4, 60)] {
            run(&mount(passthrough(folder.path()), kept(Duration::from_secs(keep))).dir, seed);
        }
    }
}

#[test]
fn a_file_behind_a_cache_is_what_two_clients_wrote_to_it() {
    if can_mount() {
        run_with_another(WriteMode::Through, 5);
        run_with_another(WriteMode::Memory, 6);
        run_with_another(WriteMode::Journal, 7);
    }
}
