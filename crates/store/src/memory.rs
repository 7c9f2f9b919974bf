//! A medium that keeps records in memory, for tests and for servers that need not survive a
//! restart.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_state::{Record, Recovered};
use comity_vfs::AsServer;

use crate::medium::{Medium, MediumError, OpenMedium};

/// Records in memory. Clones share them, so that a medium that is opened again has the stored
/// records.
#[derive(Clone, Default)]
pub struct MemoryMedium(Arc<Mutex<Contents>>);

#[derive(Default)]
struct Contents {
    known: Recovered,
    starts: u32,
    fails: bool,
}

impl MemoryMedium {
    /// Opens the medium as a server does at its start.
    #[must_use]
    pub fn open(&self) -> OpenMedium {
        let mut contents = self.contents();
        contents.starts += 1;
        let (starts, known) = (contents.starts, contents.known.clone());
        OpenMedium { medium: Box::new(self.clone()), starts, known }
    }

    /// Makes every write fail from now on, or succeed again.
    pub fn set_failing(&self, fails: bool) {
        self.contents().fails = fails;
    }

    fn writable(&self) -> Result<MutexGuard<'_, Contents>, MediumError> {
        let contents = self.contents();
        if contents.fails { Err("it was told to fail".into()) } else { Ok(contents) }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Medium for MemoryMedium {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn apply(&mut self, _: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        let mut contents = self.writable()?;
        records.iter().cloned().for_each(|record| contents.known.apply(record));
        Ok(())
    }

    fn replace(&mut self, _: &AsServer, known: &Recovered) -> Result<(), MediumError> {
        self.writable()?.known = known.clone();
        Ok(())
    }
}
