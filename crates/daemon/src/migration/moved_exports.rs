//! The table of exports that were moved: `moved` in the state folder. docs/formats.md describes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use comity_export::{FindMoved, Whereabouts};
use comity_vfs::AsServer;
use serde::{Deserialize, Serialize};

use crate::state_folder::keep;

const FILE: &str = "moved";
const VERSION: u32 = 1;

/// The place of an export, which may differ from that in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub(crate) enum ExportPlace {
    /// It was moved to this server, or has stayed here.
    Here,
    /// A peer is or will be asked to take it, and the outcome is not known.
    Leaving(Handover),
    /// It was moved to a peer.
    Away {
        /// The peer.
        peer: String,
        /// The time until which calls of NFSv3 are forwarded to it, in seconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forward_until: Option<u64>,
    },
}

/// A migration to or from a peer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Handover {
    /// The other server.
    pub(crate) peer: String,
    /// The number of the migration, in hexadecimal digits.
    pub(crate) migration: String,
    /// The time until which the source will forward calls of NFSv3, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forward_until: Option<u64>,
}

impl Handover {
    /// Returns the place of exports that the peer has taken over.
    pub(crate) fn completed(&self) -> ExportPlace {
        ExportPlace::Away { peer: self.peer.clone(), forward_until: self.forward_until }
    }
}

/// The file's contents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MovedTable {
    version: u32,
    exports: BTreeMap<PathBuf, ExportPlace>,
    /// The last migration that this server has completed, for each peer and export. A peer begins
    /// no other migration of an export before it knows the outcome.
    taken: BTreeMap<String, BTreeMap<PathBuf, String>>,
    /// The exports that a target is being asked to take.
    #[serde(skip)]
    awaiting_take: BTreeSet<PathBuf>,
}

/// The exports that were moved, and the migrations that this server has completed.
#[derive(Debug)]
pub(crate) struct MovedExports {
    folder: PathBuf,
    table: Mutex<MovedTable>,
    /// The times since which exports are served here; the others are so since the start.
    arrivals: Mutex<HashMap<PathBuf, Instant>>,
    begun: Instant,
}

impl MovedExports {
    /// Reads the table of a state folder.
    ///
    /// # Errors
    /// It cannot be read. Without it the server could serve an export that another one serves.
    pub(crate) fn open(folder: &Path) -> Result<Arc<Self>> {
        let path = folder.join(FILE);
        let advice = || {
            format!(
                "{} is damaged: restore it, or remove it after you have made sure that no other \
                 server serves the exports of this one",
                path.display()
            )
        };
        let _server = AsServer::here()?;
        let table = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice::<MovedTable>(&bytes).with_context(advice)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                MovedTable { version: VERSION, ..MovedTable::default() }
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let version = table.version;
        ensure!(version == VERSION, "{}: its version {version} is unknown", path.display());
        let (folder, table, begun) = (folder.to_owned(), Mutex::new(table), Instant::now());
        Ok(Arc::new(Self { folder, table, arrivals: Mutex::default(), begun }))
    }

    /// Returns a function that tells where exports were moved.
    pub(crate) fn finder(self: &Arc<Self>) -> Arc<FindMoved> {
        let moved = Arc::clone(self);
        Arc::new(move |path| moved.find(path))
    }

    /// Returns the same function, except that these exports are here.
    pub(crate) fn finder_with(self: &Arc<Self>, paths: &[PathBuf]) -> Arc<FindMoved> {
        let (moved, paths) = (Arc::clone(self), paths.to_vec());
        Arc::new(move |path| {
            let is_meant = paths.iter().any(|meant| meant == path);
            if is_meant { Some(Whereabouts::Here) } else { moved.find(path) }
        })
    }

    fn find(&self, path: &Path) -> Option<Whereabouts> {
        self.table().exports.get(path).map(|place| match place {
            ExportPlace::Here => Whereabouts::Here,
            ExportPlace::Leaving(_) => Whereabouts::Moving,
            ExportPlace::Away { peer, .. } => Whereabouts::At(peer.as_str().into()),
        })
    }

    /// Stores the place of exports, on stable storage.
    ///
    /// # Errors
    /// It cannot be stored; the table is as before then.
    pub(crate) fn note(&self, paths: &[PathBuf], place: &ExportPlace) -> Result<()> {
        self.change(|table| table.place(paths, place))
    }

    /// Stores that exports are handed over to a peer, on stable storage.
    ///
    /// # Errors
    /// It cannot be stored; the table is as before then.
    pub(crate) fn note_leaving(&self, paths: &[PathBuf], to: Handover) -> Result<()> {
        self.change(|table| {
            table.place(paths, &ExportPlace::Leaving(to));
            table.awaiting_take.extend(paths.iter().cloned());
        })
    }

    /// Notes that it is not known whether the peer to which these exports are leaving has them.
    pub(crate) fn note_unanswered(&self, paths: &[PathBuf]) {
        let mut table = self.table();
        table.awaiting_take.retain(|path| !paths.contains(path));
    }

    /// Stores that exports were taken over from a peer, on stable storage.
    ///
    /// # Errors
    /// It cannot be stored; the table is as before then.
    pub(crate) fn note_taken(&self, paths: &[PathBuf], from: &Handover) -> Result<()> {
        self.change(|table| {
            table.place(paths, &ExportPlace::Here);
            let taken = table.taken.entry(from.peer.clone()).or_default();
            taken.extend(paths.iter().map(|path| (path.clone(), from.migration.clone())));
        })?;
        let now = Instant::now();
        self.arrivals().extend(paths.iter().map(|path| (path.clone(), now)));
        Ok(())
    }

    /// Returns for how long all of these exports have been served here, at most since the start.
    pub(crate) fn served_for(&self, paths: &[PathBuf]) -> Duration {
        let arrivals = self.arrivals();
        let since = |path| arrivals.get(path).copied().unwrap_or(self.begun);
        paths.iter().map(since).max().unwrap_or(self.begun).elapsed()
    }

    fn arrivals(&self) -> MutexGuard<'_, HashMap<PathBuf, Instant>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this server has completed a migration.
    pub(crate) fn has_taken(&self, from: &Handover) -> bool {
        let table = self.table();
        let taken = table.taken.get(&from.peer);
        taken.is_some_and(|taken| taken.values().any(|known| *known == from.migration))
    }

    /// Returns the migrations whose peer has not answered, with their exports.
    pub(crate) fn unanswered(&self) -> BTreeMap<Handover, Vec<PathBuf>> {
        let table = self.table();
        let mut found: BTreeMap<Handover, Vec<PathBuf>> = BTreeMap::new();
        for (path, place) in &table.exports {
            if let ExportPlace::Leaving(to) = place
                && !table.awaiting_take.contains(path)
            {
                found.entry(to.clone()).or_default().push(path.clone());
            }
        }
        found
    }

    /// Returns the peer to which calls of NFSv3 about an export are forwarded now.
    pub(crate) fn forwarded_to(&self, path: &Path) -> Option<String> {
        let table = self.table();
        table.exports.get(path).and_then(forwarded_to).cloned()
    }

    /// Returns all peers to which calls of NFSv3 are forwarded now, or will be.
    pub(crate) fn all_forwarded_to(&self) -> BTreeSet<String> {
        let table = self.table();
        let peers = table.exports.values().filter_map(|place| match place {
            ExportPlace::Leaving(to) => to.forward_until.map(|_| &to.peer),
            other => forwarded_to(other),
        });
        peers.cloned().collect()
    }

    /// Returns the exports that were ever taken over from a peer.
    pub(crate) fn taken_from(&self, peer: &str) -> Vec<PathBuf> {
        let table = self.table();
        table.taken.get(peer).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Returns where the moved exports are, for the administrator.
    pub(crate) fn shown(&self) -> Vec<String> {
        let table = self.table();
        let line = |(path, place): (&PathBuf, &ExportPlace)| {
            let shown = path.display();
            match place {
                ExportPlace::Here => format!("{shown} is here"),
                ExportPlace::Leaving(to) => format!("{shown} is leaving to {}", to.peer),
                ExportPlace::Away { peer, forward_until } => {
                    let left = forward_until.and_then(seconds_until);
                    let forwarded = left.map(|left| {
                        format!(", and calls of NFSv3 are forwarded to it for {left} s more")
                    });
                    format!("{shown} is at {peer}{}", forwarded.unwrap_or_default())
                }
            }
        };
        table.exports.iter().map(line).collect()
    }

    fn change(&self, change: impl FnOnce(&mut MovedTable)) -> Result<()> {
        let server = AsServer::here()?;
        let mut table = self.table();
        let mut changed = table.clone();
        change(&mut changed);
        let [old, new] = [&*table, &changed].map(serde_json::to_vec_pretty);
        if let Err(why) = keep(&server, (&self.folder, FILE), &new?) {
            self.restore(&server, &old?);
            return Err(why).context("the place of the exports cannot be stored");
        }
        *table = changed;
        Ok(())
    }

    /// Writes the old table again after a failed change. If that fails, too, nobody knows which
    /// table is on the disk. The server then aborts, and its next start uses the table that it
    /// finds.
    fn restore(&self, server: &AsServer, old: &[u8]) {
        let path = self.folder.join(FILE);
        let is_old = match std::fs::read(&path) {
            Ok(found) => found == old,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if !is_old && keep(server, (&self.folder, FILE), old).is_err() {
            tracing::error!(
                "{} can be neither written nor restored: the server ends",
                path.display()
            );
            std::process::abort();
        }
    }

    fn table(&self) -> MutexGuard<'_, MovedTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MovedTable {
    fn place(&mut self, paths: &[PathBuf], place: &ExportPlace) {
        for path in paths {
            self.exports.insert(path.clone(), place.clone());
            self.awaiting_take.remove(path);
        }
    }
}

fn forwarded_to(place: &ExportPlace) -> Option<&String> {
    match place {
        ExportPlace::Away { peer, forward_until } => {
            forward_until.and_then(seconds_until).map(|_| peer)
        }
        _ => None,
    }
}

/// Returns the seconds that are left until a time, given in seconds since 1970.
fn seconds_until(end: u64) -> Option<u64> {
    end.checked_sub(seconds_now()).filter(|left| *left > 0)
}

/// Returns the time after so many seconds, in seconds since 1970.
pub(crate) fn after_seconds(seconds: u64) -> u64 {
    seconds_now().saturating_add(seconds)
}

/// Returns the time in seconds since 1970.
fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, migration: &str) -> Handover {
        Handover { peer: peer.into(), migration: migration.into(), forward_until: None }
    }

    #[test]
    fn a_noted_place_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let moved = MovedExports::open(folder.path()).unwrap();
        let paths = ["/srv/a", "/srv/b", "/srv/c"].map(PathBuf::from);
        assert_eq!(moved.finder()(&paths[0]), None);
        moved.note(&paths[..1], &from("b", "16").completed()).unwrap();
        moved.note_taken(&paths[1..2], &from("b", "17")).unwrap();
        moved.note_leaving(&paths[2..], from("c", "18")).unwrap();
        assert!(moved.unanswered().is_empty(), "the target is being asked");
        let moved = MovedExports::open(folder.path()).unwrap();
        assert_eq!(moved.finder()(&paths[0]), Some(Whereabouts::At("b".into())));
        assert_eq!(moved.finder()(&paths[1]), Some(Whereabouts::Here));
        assert_eq!(moved.finder()(&paths[2]), Some(Whereabouts::Moving));
        assert!(moved.has_taken(&from("b", "17")));
        assert!(!moved.has_taken(&from("b", "18")) && !moved.has_taken(&from("c", "17")));
        let left = [(from("c", "18"), vec![paths[2].clone()])];
        assert_eq!(moved.unanswered(), BTreeMap::from(left));
        assert_eq!(moved.finder_with(&paths[..1])(&paths[0]), Some(Whereabouts::Here));
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "{", "{\"version\":2,\"exports\":{},\"taken\":{}}"] {
            std::fs::write(folder.path().join(FILE), text).unwrap();
            assert!(MovedExports::open(folder.path()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_written_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let moved = MovedExports::open(folder.path()).unwrap();
        let path = [PathBuf::from("/srv/a")];
        moved.note(&path, &ExportPlace::Here).unwrap();
        // The draft of the new table has the name of a folder.
        std::fs::create_dir(folder.path().join("moved.new")).unwrap();
        assert!(moved.note(&path, &from("b", "16").completed()).is_err());
        assert_eq!(moved.finder()(&path[0]), Some(Whereabouts::Here));
    }
}
