//! A Ceph of one node with a copy of a tree of files.

use std::fs::{self, DirEntry};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use comity_backend::{Ceph, CephOptions};
use comity_vfs::{Create, Cred, Fs, Gid, Handle, Mode, Name, SetAttr, Status, Uid};

/// Starts the daemons, and ends them when its standard input ends. The tests of the backend use it,
/// too.
const SCRIPT: &str = include_str!("../../../backend/src/ceph/tests/cluster.sh");

/// Programs of the cluster.
const PROGRAMS: [&str; 4] = ["ceph", "ceph-mon", "ceph-osd", "ceph-mds"];

/// Port of the monitor, in a network of this process's own.
const PORT: &str = "6789";

/// Bytes that are written at once.
const WRITTEN_AT_ONCE: u64 = 1 << 20;

/// The cluster, which ends when this is dropped.
pub(super) struct CephCluster {
    script: Child,
    configuration: PathBuf,
}

/// Returns whether Debian's packages of Ceph are installed.
pub(super) fn is_installed() -> bool {
    let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    PROGRAMS.iter().all(is_there)
}

impl CephCluster {
    /// Starts a cluster, and copies a tree into its file system, under the same path.
    ///
    /// # Errors
    /// If the cluster does not start, or the tree cannot be copied.
    pub(super) fn with_tree(folder: &Path, tree: &Path) -> Result<Self> {
        let folder = folder.join("ceph");
        fs::create_dir(&folder)?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "cluster.sh"]).arg(&folder).arg(PORT);
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (out, mut ready) = (script.stdout.take().context("no output")?, String::new());
        BufReader::new(out).read_line(&mut ready)?;
        let log = || fs::read_to_string(folder.join("log/out")).unwrap_or_default();
        ensure!(ready == "ready\n", "Ceph does not start: {}", log());
        let cluster = Self { script, configuration: folder.join("ceph.conf") };
        cluster.copy(tree)?;
        Ok(cluster)
    }

    /// The configuration file.
    pub(super) fn configuration(&self) -> &Path {
        &self.configuration
    }

    fn copy(&self, tree: &Path) -> Result<()> {
        let configuration = Some(self.configuration());
        let options = CephOptions { configuration, ..CephOptions::default() };
        let ceph = Ceph::open(Path::new("/"), options).map_err(anyhow::Error::msg)?;
        let mut top = ceph.root();
        for part in tree.iter().filter(|part| *part != "/") {
            let name = name(part.as_bytes())?;
            let made = ceph.mkdir(&Cred::root(), &top, name, &attributes((0, 0), 0o755));
            top = done(made)?.value.handle;
        }
        let found = fs::metadata(tree)?;
        let set = attributes((found.uid(), found.gid()), found.mode());
        done(ceph.setattr(&Cred::root(), &top, &set, None))?;
        copy_below(&ceph, tree, &top)
    }
}

impl Drop for CephCluster {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        // This fails only if the process has ended.
        let _ = self.script.wait();
    }
}

fn copy_below(ceph: &Ceph, folder: &Path, into: &Handle) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        copy_entry(ceph, &entry?, into)?;
    }
    Ok(())
}

fn copy_entry(ceph: &Ceph, entry: &DirEntry, into: &Handle) -> Result<()> {
    let (found, called) = (entry.metadata()?, entry.file_name());
    let (name, set) =
        (name(called.as_bytes())?, attributes((found.uid(), found.gid()), found.mode()));
    if found.is_dir() {
        let made = done(ceph.mkdir(&Cred::root(), into, name, &set))?;
        return copy_below(ceph, &entry.path(), &made.value.handle);
    }
    let file = done(ceph.create(&Cred::root(), into, name, &Create::Guarded(set)))?.value.handle;
    let mut source = fs::File::open(entry.path())?;
    for at in (0..found.len()).step_by(WRITTEN_AT_ONCE as usize) {
        let mut data = Vec::new();
        source.by_ref().take(WRITTEN_AT_ONCE).read_to_end(&mut data)?;
        let written = done(ceph.write(&Cred::root(), &file, at, &data))?.value;
        ensure!(written as usize == data.len(), "a short write to {}", entry.path().display());
    }
    done(ceph.commit(&file)).map(drop)
}

fn name(bytes: &[u8]) -> Result<Name<'_>> {
    Name::new(bytes).ok().context("a name that a file cannot have")
}

fn attributes((uid, gid): (u32, u32), mode: u32) -> SetAttr<comity_vfs::Disk> {
    let (uid, gid) = (Some(Uid::new(uid)), Some(Gid::new(gid)));
    SetAttr { uid, gid, mode: Some(Mode::new(mode & 0o7777)), ..SetAttr::default() }
}

fn done<T>(outcome: Result<T, Status>) -> Result<T> {
    match outcome {
        Ok(value) => Ok(value),
        Err(status) => bail!("Ceph: {status}"),
    }
}
