//! A directory of another server as an export of this one: the caching proxy `serve --from`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, bail};
use comity_cache::Cache;
use comity_daemon::GivenExport;
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    DirectoryHold, FileHold, Fs, Handle, LocalLocks, LocalUse, OpenEvent, OpenFiles, RangeLock,
};

use crate::far_arguments::FarServer;
use crate::mount::Ticker;
use crate::mount_cache::CacheChoice;
use crate::mount_source::ServerChoice;

/// Longest time that the recall thread waits for an event.
const EVENT_PATIENCE: Duration = Duration::from_millis(500);

/// An export whose files are on another server, and the threads that look after it.
pub(crate) struct FarExport {
    /// The export.
    pub(crate) given: GivenExport,
    cache: Option<Arc<Cache>>,
    ticker: Option<Ticker>,
    recalls: RecallThread,
}

impl FarExport {
    /// Connects to the server, if one was named.
    ///
    /// # Errors
    /// The reason why it cannot be served, with what to do about it.
    pub(crate) fn open(typed: &FarServer) -> Result<Option<Self>> {
        let Some(source) = &typed.from else { return Ok(None) };
        let (server, mut cache) = choices(&typed.from_options)?;
        let folder = typed.cache.as_deref();
        if let Some(folder) = folder {
            cache.read("dc_root", folder.to_str())?;
        }
        let path = ServerChoice::path_on_server(source)?;
        let opened = server.served().open(source, folder.unwrap_or_else(|| Path::new("serve")))?;
        opened.greeting.iter().for_each(|text| eprintln!("comity: {text}"));
        let below: Arc<dyn Fs> = Arc::new(Layer::new(opened.fs, Sleeping));
        let cache = cache.put_over(&below, &opened.identity, false)?;
        let top = cache.clone().map_or(below, |cache| cache as Arc<dyn Fs>);
        let ticker = cache.as_ref().map(Ticker::start).transpose()?;
        let recalls = RecallThread::start(&top)?;
        let fs: Arc<dyn Fs> = Arc::new(Layer::new(top, Undelegated));
        Ok(Some(Self { given: GivenExport { path, fs }, cache, ticker, recalls }))
    }

    /// Sends the dirty data of the cache, stops the threads, and leaves the other server.
    ///
    /// # Errors
    /// Data of clients could not be sent.
    pub(crate) fn finish(self) -> Result<()> {
        drop((self.ticker, self.recalls));
        let unsent = self.cache.as_deref().map_or(0, Cache::finish);
        self.given.fs.open_files().into_iter().for_each(OpenFiles::leave);
        match unsent {
            0 => Ok(()),
            failed => bail!(
                "{failed} files have data that the server of --from did not take; with \
                 --from-options dc_write=journal it is written at the next start"
            ),
        }
    }
}

/// Reads the options about the server and the cache.
fn choices(options: &[String]) -> Result<(ServerChoice, CacheChoice)> {
    let (mut server, mut cache) = (ServerChoice::default(), CacheChoice::default());
    for option in options {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option.as_str(), None),
        };
        let needs_folder = matches!(name, "dc_root" | "dc_enable" | "nodc_enable");
        if needs_folder || !(cache.read(name, value)? || server.read(name, value)?) {
            bail!(
                "--from-options {option}: it is not one about the server or its cache; see \
                 comity mount --help for those, and give the folder by --cache"
            );
        }
    }
    Ok((server, cache))
}

/// Lets the thread leave its event loop for the calls to the other server, which block.
struct Sleeping;

impl Hook for Sleeping {
    fn around<T>(
        &self,
        _: Verb,
        _: &Handle,
        work: impl FnOnce() -> comity_vfs::Result<T>,
    ) -> comity_vfs::Result<T> {
        comity_backend::blocking(work)
    }
}

/// Refuses delegations: files of another server change without notice to the clients of this one.
struct Undelegated;

impl Hook for Undelegated {
    fn around<T>(
        &self,
        _: Verb,
        _: &Handle,
        work: impl FnOnce() -> comity_vfs::Result<T>,
    ) -> comity_vfs::Result<T> {
        work()
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        Some(self)
    }
}

impl LocalLocks for Undelegated {
    fn hold_range(&self, _: &Handle, _: (u64, u64), _: RangeLock) -> comity_vfs::Result<bool> {
        Ok(true)
    }

    fn is_range_free(&self, _: &Handle, _: (u64, u64), _: RangeLock) -> comity_vfs::Result<bool> {
        Ok(true)
    }

    fn hold_file(&self, _: &Handle, hold: FileHold) -> comity_vfs::Result<bool> {
        Ok(hold == FileHold::Free)
    }

    fn may_hold_directories(&self, _: DirectoryHold) -> Result<(), String> {
        Err("the other server does not report who changes its directories: leave it out".into())
    }

    fn poll_wanted(&self) -> Option<(Handle, LocalUse)> {
        None
    }
}

/// A thread that gives delegations back when the other server recalls them, until this is dropped.
struct RecallThread {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RecallThread {
    fn start(fs: &Arc<dyn Fs>) -> Result<Self> {
        let (fs, ended) = (Arc::clone(fs), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&ended);
        let work = move || {
            while !seen.load(Ordering::Acquire) {
                heed_event(&*fs);
            }
        };
        let thread = thread::Builder::new().name("recalls".to_owned()).spawn(work)?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

/// Takes the next event; returns the delegation if it is a recall. The cache has handled all other
/// events already.
fn heed_event(fs: &dyn Fs) {
    let Some(files) = fs.open_files() else { return thread::sleep(EVENT_PATIENCE) };
    if let Some(OpenEvent::Recalled { node, .. }) = files.poll_event(EVENT_PATIENCE)
        && let Err(status) = files.return_delegation(&node)
    {
        tracing::warn!(%status, "a delegation could not be returned");
    }
}

impl Drop for RecallThread {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that heeds recalls has panicked");
        }
    }
}
