//! A disk that can be full, and clients to store.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use comity_state::{CallbackAddress, Caller, ClientOwner, Engine, Setclientid, Settings, Verifier};
use comity_store::{Store, StoreError};
use comity_vfs::AsServer;
use tempfile::TempDir;

pub const NOW: Duration = Duration::from_secs(1);

/// Evidence that this thread has the server's own identity.
pub fn server() -> AsServer {
    AsServer::here().unwrap()
}

/// A file system in memory, which is unmounted on drop.
pub struct Tmpfs(TempDir);

impl Tmpfs {
    pub fn mount(options: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(place.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("skipped: only root may mount");
        }
        mounted.then_some(Self(place))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Uses all free bytes.
    pub fn fill(&self) {
        let mut file = File::create(self.path().join("fill")).unwrap();
        while file.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
    }

    /// Gives back what [`Tmpfs::fill`] used. The file is emptied, because a process that another
    /// test is about to start may hold it open until its exec.
    pub fn make_room(&self) {
        File::create(self.path().join("fill")).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}

pub fn engine(store: &Store) -> Engine {
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    Engine::new(NOW, settings, store.recovered())
}

/// Registers a new client, which the store has to remember.
pub fn meet(store: &Store, engine: &Engine, number: u32) -> Result<(), StoreError> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: number.to_be_bytes().into() };
    let (caller, callback) = (Caller::default(), CallbackAddress::default());
    let args = Setclientid { owner, caller, callback };
    let met = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (met.clientid, met.confirm), caller).unwrap();
    store.settle(engine, engine.unstored().unwrap())
}
