//! Notes of a head about moves: their number, and the clients that left with each export.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_state::{ClientProtocol, RecordedClient};

/// The moves from and to this head.
#[derive(Debug, Default)]
pub(super) struct MoveNotes {
    /// The number of moves that have changed who serves an export.
    count: AtomicU64,
    departed: Mutex<BTreeMap<PathBuf, Vec<RecordedClient>>>,
}

impl MoveNotes {
    /// Returns the number of moves so far. A view of etcd that was read before the last of them may
    /// be wrong.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Counts a move. The caller has the right to replace the plan.
    pub(super) fn add(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes the clients that had state of an export when it left.
    pub(super) fn note_departed(&self, path: &Path, clients: Vec<RecordedClient>) {
        self.departed().insert(path.to_owned(), clients);
    }

    /// Returns the clients that had state of an export when it last left, and have none now that it
    /// comes back with the clients `staying`. This head has records of them, so that they could
    /// reclaim what they have lost at the other head. Hosts of NFSv3 are not among them: their
    /// locks do not end with a lease, so that one without locks has unlocked them.
    pub(super) fn lost_elsewhere(
        &self,
        path: &Path,
        staying: &[RecordedClient],
    ) -> Vec<RecordedClient> {
        let mut departed = self.departed().get(path).cloned().unwrap_or_default();
        departed.retain(|it| it.protocol != ClientProtocol::Nlm && !staying.contains(it));
        departed
    }

    /// Forgets the clients that had state of an export, after those that have lost it are stored.
    pub(super) fn forget_departed(&self, path: &Path) {
        self.departed().remove(path);
    }

    fn departed(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Vec<RecordedClient>>> {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use comity_credential::OriginChannel;

    use super::*;

    #[test]
    fn a_client_that_left_with_an_export_and_does_not_come_back_has_lost_its_state() {
        let client = |name: &str| RecordedClient {
            protocol: ClientProtocol::ExchangeId,
            channel: OriginChannel::Plain,
            id: name.as_bytes().into(),
        };
        let (notes, path) = (MoveNotes::default(), Path::new("/srv/a"));
        let host = RecordedClient { protocol: ClientProtocol::Nlm, ..client("host") };
        notes.note_departed(path, vec![client("x"), client("y"), host]);
        assert_eq!(notes.lost_elsewhere(path, &[client("y"), client("z")]), [client("x")]);
        assert!(notes.lost_elsewhere(Path::new("/srv/b"), &[]).is_empty());
        notes.forget_departed(path);
        assert!(notes.lost_elsewhere(path, &[]).is_empty());
    }
}
