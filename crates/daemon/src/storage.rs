//! Writes clients' state to the store, and repairs a store after a failed write, for example when
//! its disk was full.

use std::sync::Arc;
use std::time::Instant;

use comity_nfs4::Settle;
use comity_server::blocking;
use comity_state::{Engine, JournalPosition};
use comity_store::{Store, StoreError};

use crate::limits::REPAIR_PAUSE;

/// Puts what the engine has recorded on stable storage; returns false if that fails.
pub(crate) fn settle(engine: &Arc<Engine>, store: &Arc<Store>) -> Arc<Settle> {
    let (engine, store) = (Arc::clone(engine), Arc::clone(store));
    Arc::new(move |position: JournalPosition| match blocking(|| store.settle(&engine, position)) {
        Ok(()) => true,
        // This error was logged when it first occurred.
        Err(StoreError::Broken { .. }) => false,
        Err(error) => {
            let seconds = REPAIR_PAUSE.as_secs();
            tracing::error!("{error}; no client gets new state; tried again every {seconds} s");
            false
        }
    })
}

/// Tries to repair the store, with pauses between attempts.
pub(crate) struct Repair {
    engine: Arc<Engine>,
    store: Arc<Store>,
    tried: Option<Instant>,
}

impl Repair {
    /// Makes the repair of `store`, to which `engine` records.
    pub(crate) const fn new(engine: Arc<Engine>, store: Arc<Store>) -> Self {
        Self { engine, store, tried: None }
    }

    /// Tries a repair if the store is broken and the pause is over.
    pub(crate) fn pass(&mut self) {
        let rests = self.tried.is_some_and(|tried| tried.elapsed() < REPAIR_PAUSE);
        if rests || !self.store.is_broken() {
            return;
        }
        match blocking(|| self.store.repair(&self.engine)) {
            Ok(_) => tracing::warn!("the state of clients is stored again"),
            Err(error) => tracing::debug!("{error}"),
        }
        self.tried = Some(Instant::now());
    }
}
