//! A placement over file systems in memory or in folders.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on ends")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use comity_backend::{Memory, MemoryOptions};
use comity_placement::limits::UNIT_BYTES_MIN;
use comity_placement::{DataServer, Placed, PlacementKey, PlacementSettings, ReachFiles};
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{
    Create, Cred, Disk, Fs, Gid, Handle, LinkState, Name, Result, SetAttr, Space, Status,
    Threshold, Uid,
};

/// The stripe unit in bytes.
pub const UNIT: u64 = UNIT_BYTES_MIN as u64;

/// The size from which on files are placed, in a placement with a threshold.
pub const SMALL_BELOW: u64 = 3 * UNIT;

/// A data server that answers unless it is made to be down.
pub struct Store {
    pub fs: Arc<dyn Fs>,
    pub is_down: AtomicBool,
    /// The bytes that it says are available.
    pub bytes_available: AtomicU64,
}

impl ReachFiles for Store {
    fn reach(&self) -> Result<Arc<dyn Fs>> {
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(Status::Delay),
            false => Ok(Arc::clone(&self.fs)),
        }
    }

    fn server_handle(&self, file: &Handle) -> Result<Box<[u8]>> {
        Ok(file.bytes().into())
    }

    fn state(&self) -> LinkState {
        let is_up = !self.is_down.load(Ordering::Relaxed);
        let bytes_available = self.bytes_available.load(Ordering::Relaxed);
        let space = Some(Space { bytes_available, ..Space::default() });
        LinkState { is_up, since: Instant::now(), last_error: None, space }
    }
}

/// A placement and its parts.
pub struct World {
    pub below: Arc<dyn Fs>,
    pub stores: Vec<Arc<Store>>,
    pub placed: Placed,
}

impl World {
    /// A placement over these file systems: that of the metadata server, and those of the data
    /// servers.
    pub fn over(below: Arc<dyn Fs>, stores: Vec<Arc<dyn Fs>>) -> Self {
        Self::draining(below, stores, &[])
    }

    /// The same, where the data servers of these numbers are being drained.
    pub fn draining(below: Arc<dyn Fs>, stores: Vec<Arc<dyn Fs>>, draining: &[usize]) -> Self {
        let store = |fs| {
            let (is_down, bytes_available) = (AtomicBool::new(false), AtomicU64::new(1 << 40));
            Arc::new(Store { fs, is_down, bytes_available })
        };
        let stores: Vec<Arc<Store>> = stores.into_iter().map(store).collect();
        let settings = settings(&stores, draining);
        let placed = Placed::new(Arc::clone(&below), PlacementKey::new([7; 16]), settings);
        Self { below, stores, placed }
    }

    /// A placement with mirrors over these file systems, two of each file.
    pub fn mirrored(below: Arc<dyn Fs>, stores: Vec<Arc<dyn Fs>>) -> Self {
        let world = Self::over(below, stores);
        let settings = PlacementSettings { mirrors: Some(2), ..settings(&world.stores, &[]) };
        let placed = Placed::new(Arc::clone(&world.below), PlacementKey::new([7; 16]), settings);
        Self { placed, ..world }
    }

    /// The same, where files stay on the metadata server while they are smaller than
    /// [`SMALL_BELOW`].
    #[must_use]
    pub fn with_threshold(self) -> Self {
        let settings = self.placed.settings();
        let threshold = Threshold { write_file_bytes: Some(SMALL_BELOW), ..Threshold::default() };
        let settings = PlacementSettings { threshold, ..settings.clone() };
        Self { placed: self.placed.with(settings), ..self }
    }

    /// The placement after a reload, with the first data servers only, of which those of these
    /// numbers are being drained.
    pub fn reloaded(&self, servers: usize, draining: &[usize]) -> Placed {
        self.placed.with(settings(&self.stores[..servers], draining))
    }

    /// A placement with everything in memory.
    pub fn in_memory(stores: usize) -> Self {
        Self::over(memory(), (0..stores).map(|_| memory()).collect())
    }
}

/// Work that is done once.
pub type Once = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// Does something once, after the next call of a verb.
pub struct After {
    verb: Verb,
    next: Once,
}

impl After {
    /// Puts the hook over a file system; returns it with the place for the work.
    pub fn over(fs: &Arc<dyn Fs>, verb: Verb) -> (Arc<dyn Fs>, Once) {
        let next = Once::default();
        let hook = Self { verb, next: Arc::clone(&next) };
        (Arc::new(Layer::new(Arc::clone(fs), hook)), next)
    }
}

impl Hook for After {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = work();
        let next = (verb == self.verb).then(|| self.next.lock().unwrap().take()).flatten();
        next.into_iter().for_each(|next| next());
        done
    }
}

/// Makes a file with this data in the top directory.
pub fn make(placed: &Placed, of: &str, data: &[u8]) -> Handle {
    let how = Create::Unchecked(SetAttr::default());
    let made = placed.create(&root(), &placed.root(), name(of), &how).unwrap();
    if !data.is_empty() {
        placed.write(&root(), &made.value.handle, 0, data).unwrap();
    }
    made.value.handle
}

fn settings(stores: &[Arc<Store>], draining: &[usize]) -> PlacementSettings {
    let server = |(at, store): (usize, &Arc<Store>)| DataServer {
        name: format!("s{at}").into(),
        address: ([192, 0, 2, at as u8], 2049).into(),
        path: None,
        is_draining: draining.contains(&at),
        files: Arc::<Store>::clone(store),
    };
    let servers = stores.iter().enumerate().map(server).collect();
    PlacementSettings {
        name: b"/srv"[..].into(),
        mirrors: None,
        unit_bytes: UNIT_BYTES_MIN,
        threshold: Threshold::default(),
        servers,
    }
}

pub fn memory() -> Arc<dyn Fs> {
    Arc::new(Memory::new(MemoryOptions::default()).unwrap())
}

pub fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

pub fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}
