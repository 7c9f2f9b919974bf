//! The files that are measured. They are the same for every target, so that only the servers
//! differ.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
pub use comity_remote::rpc::CALLER;

use crate::limits::PAYLOAD_COPIED_MAX;

/// Files in the directories that are used for READDIR, LOOKUP and GETATTR.
pub const SMALL_FILES: usize = 1000;
/// Bytes of each small file.
const SMALL_BYTES: usize = 4096;
/// Bytes of the files that are read and written.
pub const LARGE_BYTES: u64 = 16 << 20;
/// Files that are written, one for each connection.
pub const WRITTEN_FILES: usize = 4;
/// Files in the huge directory.
pub const HUGE_FILES: usize = 100_000;

/// A tree of files at a path.
#[derive(Debug, Clone)]
pub struct FixtureTree {
    root: PathBuf,
}

impl FixtureTree {
    /// The tree at `root`, made by [`FixtureTree::build`].
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Makes the tree in the empty directory `root`.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn build(root: &Path) -> Result<Self> {
        let layout = Self::at(root);
        own(root)?;
        layout.directory(Self::SMALL)?;
        layout.fill(Self::SMALL, SMALL_FILES, &[7; SMALL_BYTES])?;
        layout.directory(Self::DATA)?;
        layout.large(&Self::read_file())?;
        (0..WRITTEN_FILES).try_for_each(|number| layout.like_read(&Self::written_file(number)))?;
        // While ext4 allocates blocks for written data, a file may show no blocks for a moment, and
        // a reply would differ from the expected one.
        rustix::fs::syncfs(File::open(root)?)?;
        Ok(layout)
    }

    /// The directory of [`SMALL_FILES`] files that all operations share.
    pub const SMALL: &'static str = "small";
    /// The directory of files that are read and written.
    pub const DATA: &'static str = "data";

    /// The top of the tree.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of small files.
    #[must_use]
    pub fn small(&self) -> PathBuf {
        self.root.join(Self::SMALL)
    }

    /// The name of a small file.
    #[must_use]
    pub fn file(number: usize) -> String {
        format!("f{number:06}")
    }

    /// The path below the top of the file that is read.
    #[must_use]
    pub fn read_file() -> String {
        format!("{}/read", Self::DATA)
    }

    /// The path below the top of a file that is written.
    #[must_use]
    pub fn written_file(number: usize) -> String {
        format!("{}/written{number}", Self::DATA)
    }

    /// Makes an empty directory below the top.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn directory(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        fs::create_dir(&path).with_context(|| format!("mkdir {}", path.display()))?;
        own(&path)
    }

    /// Makes an empty directory under a new name, and returns the name.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn new_directory(&self, prefix: &str) -> Result<String> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(&self.root)?.keep();
        own(&made)?;
        let name = made.file_name().context("no name")?;
        Ok(name.to_string_lossy().into_owned())
    }

    /// Makes a directory of `files` empty files below the top.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn listing(&self, name: &str, files: usize) -> Result<()> {
        self.directory(name)?;
        self.fill(name, files, &[])
    }

    fn fill(&self, directory: &str, files: usize, content: &[u8]) -> Result<()> {
        let directory = self.root.join(directory);
        for number in 0..files {
            let path = directory.join(Self::file(number));
            let mut file = File::create(&path).with_context(|| path.display().to_string())?;
            file.write_all(content)?;
            rustix::fs::fchown(&file, owner().0, owner().1)?;
        }
        Ok(())
    }

    fn large(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        let mut file = File::create(&path).with_context(|| path.display().to_string())?;
        for start in (0..LARGE_BYTES).step_by(PAYLOAD_COPIED_MAX) {
            file.write_all(&content(start, PAYLOAD_COPIED_MAX))?;
        }
        file.sync_all()?;
        own(&path)
    }

    /// Makes another file with the content of the file that is read.
    fn like_read(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        let copied = fs::copy(self.root.join(Self::read_file()), &path);
        copied.with_context(|| path.display().to_string())?;
        File::open(&path)?.sync_all()?;
        own(&path)
    }
}

/// Returns the content of a large file from `offset` on: every eight bytes contain their own
/// offset.
#[must_use]
pub fn content(offset: u64, bytes: usize) -> Vec<u8> {
    let words = (offset..offset + bytes as u64).step_by(8);
    words.flat_map(|place| (place ^ 0x5a5a_0000_0000_5a5a).to_be_bytes()).collect()
}

fn own(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    if rustix::process::geteuid().is_root() {
        chown(path, Some(CALLER), Some(CALLER)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn owner() -> (Option<rustix::fs::Uid>, Option<rustix::fs::Gid>) {
    let root = rustix::process::geteuid().is_root();
    let id = root.then_some(CALLER);
    (id.map(rustix::fs::Uid::from_raw), id.map(rustix::fs::Gid::from_raw))
}
