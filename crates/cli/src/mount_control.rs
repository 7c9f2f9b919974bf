//! Answers the requests at the control socket of a program that serves a mount.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use comity_cache::Cache;
use comity_server::control::{Answer, ControlHandler, ControlSocket};
use comity_vfs::{Cred, Disk, Fs, Handle, Name, Status};
use serde_json::{Value, json};

use crate::common_arguments::StateFolderArguments;
use crate::mount_request::{FileVerb, MountRequest};
use crate::mount_socket;

/// Time for which one request fills a file; the next request continues.
const FILL_TIME: Duration = Duration::from_millis(200);

/// Time for which the program of a mount stays to report that data was not sent.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The facts about a mount that the control socket reports.
pub(crate) struct MountControl {
    /// The directory, resolved.
    pub(crate) dir: PathBuf,
    /// The file system that is mounted there.
    pub(crate) source: String,
    /// The cache of the mount, if it has one.
    pub(crate) cache: Option<Arc<Cache>>,
    /// The address of the page about the cache.
    pub(crate) metrics: Option<SocketAddr>,
    /// Files that could not be sent after the mount was gone.
    pub(crate) unsent: Arc<AtomicU64>,
}

/// The open control socket of a mount.
pub(crate) struct OpenControl {
    socket: Option<ControlSocket>,
    unsent: Arc<AtomicU64>,
}

impl OpenControl {
    /// Opens the socket. A mount without a socket works, too.
    pub(crate) fn start(typed: &StateFolderArguments, control: MountControl) -> Self {
        let unsent = Arc::clone(&control.unsent);
        let path = mount_socket::made_folder(typed)
            .map(|folder| mount_socket::path(&folder, &control.dir));
        let started = path.and_then(|path| {
            ControlSocket::start(&path, control).with_context(|| path.display().to_string())
        });
        let told = |error: &anyhow::Error| {
            tracing::warn!(
                "comity cache and comity umount cannot ask this mount: {error:#}; choose another \
                 --state-dir"
            );
        };
        Self { socket: started.inspect_err(told).ok(), unsent }
    }

    /// Closes the socket. If data was not sent, waits first, so that clients of the socket can read
    /// that.
    pub(crate) fn end(self, unsent: u64) {
        let Some(socket) = self.socket else { return };
        if unsent > 0 {
            self.unsent.store(unsent, Ordering::Release);
            std::thread::sleep(LAST_WORDS);
        }
        socket.shutdown();
    }
}

impl ControlHandler for MountControl {
    type Request = MountRequest;

    /// A request that waits for a server does not delay other requests.
    fn is_in_turn(_request: &Self::Request) -> bool {
        false
    }

    fn perform(&self, request: MountRequest) -> Answer {
        match self.answer(&request) {
            Ok(value) => Answer::Done(value),
            Err(error) => Answer::Failed(format!("{error:#}")),
        }
    }
}

impl MountControl {
    fn answer(&self, request: &MountRequest) -> Result<Value> {
        match request {
            MountRequest::Status => Ok(self.status()),
            MountRequest::Verify { place } => self.verify(place.as_deref()),
            MountRequest::File { verb, path, caller } => {
                let (cache, cred) = (self.cache()?, caller.cred());
                let path = Path::new(OsStr::from_bytes(path));
                let told = |status| failure(path, status);
                let node = find(cache, &cred, path).map_err(told)?;
                perform(cache, *verb, &cred, &node).map_err(told)
            }
        }
    }

    fn cache(&self) -> Result<&Cache> {
        match &self.cache {
            Some(cache) => Ok(cache),
            None => bail!(
                "{}: this mount has no disk cache; mount it with -o dc_enable",
                self.dir.display()
            ),
        }
    }

    fn status(&self) -> Value {
        json!({
            "mount": self.dir.display().to_string(),
            "source": self.source,
            "process": std::process::id(),
            "metrics": self.metrics,
            "unsent_files": self.unsent.load(Ordering::Acquire),
            "cache": self.cache.as_deref().map(cache_json),
        })
    }

    fn verify(&self, place: Option<&str>) -> Result<Value> {
        let step = self.cache()?.verify(place).map_err(|_| anyhow!("no place in the cache"))?;
        Ok(json!({
            "files": step.files,
            "pages": step.pages,
            "damaged_pages": step.damaged_pages,
            "next": step.next,
        }))
    }
}

fn cache_json(cache: &Cache) -> Value {
    let status = cache.status();
    json!({
        "hit_bytes": status.hit_bytes,
        "miss_bytes": status.miss_bytes,
        "spared_calls": status.spared_calls,
        "disk_bytes": status.disk_bytes,
        "partial_files": status.partial_files,
        "dirty_bytes": status.dirty_bytes,
        "dirty_files": status.dirty_files,
        "dirty_age_milliseconds": status.dirty_age_milliseconds,
        "conflicts": status.conflicts,
        "damaged_pages": status.damaged_pages,
        "is_disk_usable": status.is_disk_usable,
    })
}

/// Finds a file by its path from the root of the mount.
fn find(cache: &Cache, cred: &Cred<Disk>, path: &Path) -> comity_vfs::Result<Handle> {
    let mut node = cache.root();
    for part in path.components() {
        let Component::Normal(name) = part else { return Err(Status::Inval) };
        let name = Name::new(name.as_encoded_bytes())?;
        node = cache.lookup(cred, &node, name)?.node.handle;
    }
    Ok(node)
}

fn perform(
    cache: &Cache,
    verb: FileVerb,
    cred: &Cred<Disk>,
    node: &Handle,
) -> comity_vfs::Result<Value> {
    match verb {
        FileVerb::Fill => fill(cache, cred, node),
        FileVerb::Pin => cache.set_pinned(node, true).map(|()| json!({})),
        FileVerb::Drop => Ok(json!({ "bytes": cache.drop_file(node) })),
    }
}

/// Fills a file for a time; returns how much of it is cached.
fn fill(cache: &Cache, cred: &Cred<Disk>, node: &Handle) -> comity_vfs::Result<Value> {
    let begun = Instant::now();
    let mut left = None;
    cache.fill(cred, node, &mut |done, total| {
        left = Some((done, total)).filter(|(done, total)| done < total);
        if begun.elapsed() < FILL_TIME { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(json!({ "complete": left.is_none(), "done_bytes": left.map(|(done, _)| done) }))
}

/// The error for a file, with what to do about it.
fn failure(path: &Path, status: Status) -> anyhow::Error {
    let shown = path.display();
    match status {
        Status::NoSpc => anyhow!(
            "{shown}: the cache disk takes no pages: it is full or has failed, or the mount has \
             -o dc_read; see comity cache status"
        ),
        Status::Acces | Status::Perm => {
            anyhow!("{shown}: the server does not let you read it; do it as a user whom it lets")
        }
        Status::Delay => anyhow!("{shown}: others change the file all the time; try again later"),
        Status::NoEnt => anyhow!("{shown}: not there, or nothing of it is cached"),
        status => anyhow!("{shown}: {status}"),
    }
}
