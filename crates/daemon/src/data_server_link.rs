//! The connection of a metadata server to one data server. It is made and watched in the
//! background, so that calls to a data server that is lost fail at once.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use comity_export::DataServerSpec;
use comity_placement::{LayoutHandle, PlacementKey, ReachFiles};
use comity_remote::{ClientIdentity, DelegationUse, MountOptions, Mounted, NfsVersion, Tcp};
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{Access, Cred, Fs, Handle, HandleTable, LinkState, Space, Status};

/// Time after which a client whose call waits for a data server gets DELAY.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time within which a data server must answer the first call.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// First pause before a data server that did not answer is tried again.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// Longest pause between two attempts to reach a data server.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Time between two calls that only find out whether a data server still answers.
const INTERVAL: Duration = Duration::from_secs(10);

/// The connection to a data server, which may still have to be made.
pub(crate) struct DataServerLink {
    spec: DataServerSpec,
    address: SocketAddr,
    /// The key of the placement.
    key: PlacementKey,
    /// The folder of the data server, from the first time on that it was reached.
    folder: OnceLock<Folder>,
    state: Mutex<LinkState>,
    /// Has the thread of the link look at the data server at once. The thread ends when this is
    /// dropped.
    doubts: SyncSender<()>,
}

/// The folder of a data server.
struct Folder {
    /// The folder as the link itself uses it.
    own: Arc<dyn Fs>,
    /// The data server's own handles.
    handles: Arc<HandleTable>,
    /// The folder as the placement uses it: the link notices calls that are not answered.
    watched: Arc<dyn Fs>,
}

/// The first outcome of dialing a data server.
pub(crate) type Dialed = Result<()>;

impl DataServerLink {
    /// Starts to dial a data server. The thread of the link sends the first outcome with `number`
    /// to `first`, and goes on trying until the link is dropped.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn dial(
        spec: &DataServerSpec,
        (address, key): (SocketAddr, &PlacementKey),
        (number, first): (usize, Sender<(usize, Dialed)>),
    ) -> Result<Arc<Self>> {
        let (doubts, doubted) = sync_channel(1);
        let since = Instant::now();
        let state = LinkState { is_up: false, since, last_error: None, space: None };
        let link = Arc::new(Self {
            spec: spec.clone(),
            address,
            key: key.clone(),
            folder: OnceLock::new(),
            state: Mutex::new(state),
            doubts,
        });
        let watched = Arc::downgrade(&link);
        let report = move |outcome| drop(first.send((number, outcome)));
        let work = move || watch(&watched, &doubted, report);
        thread::Builder::new().name("data-server".into()).spawn(work)?;
        Ok(link)
    }

    /// Mounts the data server, or looks whether it still answers.
    fn try_once(self: &Arc<Self>) -> Result<()> {
        let tried = match self.folder.get() {
            None => self.mount(),
            Some(folder) => self.look(&*folder.own, &folder.handles),
        };
        match tried {
            Ok(space) => self.note_up(space),
            Err(why) => {
                self.note_down(&format!("{why:#}"));
                return Err(why);
            }
        }
        Ok(())
    }

    fn mount(self: &Arc<Self>) -> Result<Option<Space>> {
        let transport = Box::new(Tcp::from(self.address));
        let Mounted { fs: own, handles, .. } =
            comity_remote::mount(transport, &options(&self.spec)?)?;
        let space = self.look(&*own, &handles)?;
        let hook = Watched(Arc::downgrade(self));
        let watched = Arc::new(Layer::new(Arc::clone(&own), hook));
        // Only the thread of the link mounts.
        let _ = self.folder.set(Folder { own, handles, watched });
        Ok(space)
    }

    /// Asks a data server whether it can be used. Returns its space, if it tells that.
    fn look(&self, own: &dyn Fs, handles: &HandleTable) -> Result<Option<Space>> {
        let space = look(own, &self.spec)?;
        if self.spec.path.is_none() {
            check_key(own, handles, &self.key)?;
        }
        Ok(space)
    }

    /// Notes that the data server answers, and its space if it told that.
    fn note_up(&self, space: Option<Space>) {
        let mut state = self.known();
        if !state.is_up {
            (state.is_up, state.since) = (true, Instant::now());
            tracing::info!(server = self.spec.name, "a data server was reached");
        }
        state.last_error = None;
        state.space = space.or(state.space);
    }

    /// Notes that the data server is lost.
    fn note_down(&self, why: &str) {
        let mut state = self.known();
        if state.is_up {
            (state.is_up, state.since) = (false, Instant::now());
            tracing::warn!(server = self.spec.name, why, "a data server does not answer");
        }
        state.last_error = Some(why.into());
    }

    fn known(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReachFiles for DataServerLink {
    fn reach(&self) -> comity_vfs::Result<Arc<dyn Fs>> {
        match self.folder.get() {
            Some(folder) if self.known().is_up => Ok(Arc::clone(&folder.watched)),
            _ => Err(Status::Delay),
        }
    }

    fn server_handle(&self, file: &Handle) -> comity_vfs::Result<Box<[u8]>> {
        let folder = self.folder.get().ok_or(Status::Delay)?;
        folder.handles.name(file).map(|name| (*name).into())
    }

    fn state(&self) -> LinkState {
        self.known().clone()
    }
}

/// Asks a data server whether this server may put files into its folder. A data server shows its
/// root, which nobody can change, to a server that it does not let in. Returns its space, if it
/// tells that.
fn look(folder: &dyn Fs, spec: &DataServerSpec) -> Result<Option<Space>> {
    match folder.access(&Cred::root(), &folder.root(), Access::MODIFY) {
        Ok((rights, _)) if rights.contains(Access::MODIFY) => {
            Ok(folder.statfs(&Cred::root(), &folder.root()).ok())
        }
        Ok(_) if spec.path.is_some() => Err(anyhow!(
            "it does not let this server put files there: have it export the path for writing, \
             with no_root_squash, to the address from which this server calls"
        )),
        Ok(_) => Err(anyhow!(
            "it does not let this server put files there: start it with --for and the address from \
             which this server calls"
        )),
        Err(Status::Delay) => Err(silent()),
        Err(status) => Err(status.into()),
    }
}

/// Finds out whether a data server has the key of the placement, by a handle of its folder as a
/// layout would have it. The data server refuses a handle that another key has sealed.
fn check_key(folder: &dyn Fs, handles: &HandleTable, key: &PlacementKey) -> Result<()> {
    let top = folder.root();
    let own = handles.name(&top)?;
    let sealed = key.seal(LayoutHandle { writes: false, fence: 0, own: &own });
    match folder.getattr(&handles.handle(&sealed)?) {
        Err(Status::BadHandle) => Err(anyhow!(
            "it has another key: copy the file of `key` to it, and restart it with \
             --placement-key and that file"
        )),
        Err(Status::Delay) => Err(silent()),
        // The handle is known, whatever it may be used for.
        _ => Ok(()),
    }
}

fn silent() -> anyhow::Error {
    anyhow!("a call was not answered within {} s", PATIENCE.as_secs())
}

/// Dials and watches a data server until its link is dropped.
fn watch(link: &Weak<DataServerLink>, doubted: &Receiver<()>, report: impl FnOnce(Dialed)) {
    let mut report = Some(report);
    let mut backoff = PAUSE_MIN;
    while let Some(link) = link.upgrade() {
        let tried = link.try_once();
        drop(link);
        let pause = if tried.is_ok() { INTERVAL } else { backoff };
        backoff = if tried.is_ok() { PAUSE_MIN } else { (backoff * 2).min(PAUSE_MAX) };
        if let Some(report) = report.take() {
            report(tried);
        }
        if doubted.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// The options for mounting a data server. A client gets DELAY while a data server does not answer.
/// Delegations are off, because clients write to data servers directly by layouts.
fn options(spec: &DataServerSpec) -> Result<MountOptions> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let process = rustix::process::getpid().as_raw_nonzero();
    let owner = format!("comity placement {host} {process} {}", spec.name);
    let mounted = MountOptions::new(ClientIdentity::new(owner)?, Cred::root());
    let mounted = match &spec.path {
        None => mounted,
        Some(path) => {
            MountOptions { versions: (NfsVersion::Three, NfsVersion::Three), ..mounted.at(path) }
        }
    };
    Ok(MountOptions {
        patience: PATIENCE,
        retries: 0,
        is_soft: true,
        late: Status::Delay,
        delegations: DelegationUse::None,
        introduction: INTRODUCTION,
        ..mounted
    })
}

/// Runs calls to a data server, which block until it answers, outside of the event loop. A call
/// that is not answered makes the data server count as lost until its link has reached it again.
struct Watched(Weak<DataServerLink>);

impl Hook for Watched {
    fn around<T>(
        &self,
        _: Verb,
        _: &Handle,
        work: impl FnOnce() -> comity_vfs::Result<T>,
    ) -> comity_vfs::Result<T> {
        let done = comity_backend::blocking(work);
        if let (Err(Status::Delay), Some(link)) = (&done, self.0.upgrade()) {
            link.note_down(&silent().to_string());
            // If the channel is full, the thread checks the data server in any case.
            let _ = link.doubts.try_send(());
        }
        done
    }
}
