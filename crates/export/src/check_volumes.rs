//! Finds exports that show the same files, by their opened file systems and by the paths of their
//! directories within the volumes: directories of one tree may be mounted in different places.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use comity_vfs::{AsServer, DirectoryHold, Fs, Handle};

use crate::Location;
use crate::check::Merged;
use crate::diagnostic::Diagnostics;
use crate::true_paths::TruePaths;

/// The server holds the directories of each export on its own. The kernel would take a change
/// through the other export for one by a program.
const WAITS: &str = "with dir_delegations=local a change through one of them waits for clients of \
    the other: write local-late in its place";

/// The top directories of the exports that were opened so far. The work for each export grows with
/// the depth of its path only.
#[derive(Debug, Default)]
pub(crate) struct Tops {
    paths: TruePaths,
    list: Vec<Top>,
    /// The first export of each directory.
    by_root: HashMap<(u64, Handle), usize>,
    by_path: HashMap<PathInVolume, usize>,
}

#[derive(Debug)]
struct Top {
    path: Box<Path>,
    place: Location,
    at: PathInVolume,
    /// The number of an earlier export of the same directory.
    same: Option<usize>,
    /// True if the kernel makes programs wait that change its delegated directories.
    makes_wait: bool,
}

/// A path from the top of a volume, or the path of an export where this is not known, as for a
/// directory of another server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PathInVolume {
    volume: u64,
    is_true: bool,
    path: PathBuf,
}

impl PathInVolume {
    fn above(&self) -> impl Iterator<Item = Self> {
        let Self { volume, is_true, path } = self;
        path.ancestors().skip(1).map(|path| Self {
            volume: *volume,
            is_true: *is_true,
            path: path.to_owned(),
        })
    }
}

impl Tops {
    /// Returns the directories of no export, with the mounts as they are now.
    pub(crate) fn now() -> Self {
        let read = AsServer::here().map(|server| TruePaths::read(&server));
        Self { paths: read.unwrap_or_default(), ..Self::default() }
    }

    /// Adds an export.
    pub(crate) fn add(&mut self, Merged { declaration, settings }: &Merged, fs: &dyn Fs) {
        let (path, root) = (declaration.path.as_path(), fs.root());
        let volume = fs.volume(&root);
        let found = match &settings.ceph.path {
            Some(path) => Some(path.clone()),
            None => AsServer::here().ok().and_then(|server| self.paths.of(&server, path)),
        };
        let is_true = found.is_some();
        let at = PathInVolume { volume, is_true, path: found.unwrap_or_else(|| path.to_owned()) };
        let number = self.list.len();
        let first = *self.by_root.entry((volume, root)).or_insert(number);
        self.by_path.entry(at.clone()).or_insert(number);
        let same = (first != number).then_some(first);
        let holds = declaration.specs.iter().map(|spec| spec.terms.rules.dir_delegations.hold());
        let makes_wait = holds.flatten().any(|hold| hold == DirectoryHold::Wait);
        let (path, place) = (path.into(), declaration.place.clone());
        self.list.push(Top { path, place, at, same, makes_wait });
    }

    /// Warns of each export that shows the files of another one, or refuses it if a change through
    /// one of them would wait for clients of the other. Of several exports that contain a directory
    /// the innermost is named.
    pub(crate) fn report(&self, diagnostics: &mut Diagnostics) {
        for (number, top) in self.list.iter().enumerate() {
            if let Some(first) = top.same.and_then(|first| self.list.get(first)) {
                report("is the same directory as", (top, first), diagnostics);
            } else if let Some(outer) = top.at.above().find_map(|path| self.by_path.get(&path))
                && let Some(other) = self.list.get(*outer)
            {
                match *outer < number {
                    true => report("lies in", (top, other), diagnostics),
                    false => report("holds", (other, top), diagnostics),
                }
            }
        }
    }
}

/// Warns at the later one of two exports that share files, or refuses it.
fn report(how: &str, (later, earlier): (&Top, &Top), diagnostics: &mut Diagnostics) {
    let (path, other, place) = (later.path.display(), earlier.path.display(), &earlier.place);
    let is_seen = later.path.starts_with(&earlier.path) || earlier.path.starts_with(&later.path);
    let why = match is_seen || !later.at.is_true {
        true => "",
        false => ", by a bind mount or a link",
    };
    let what = format!("{path} {how} {other} ({place}){why}");
    if later.makes_wait || earlier.makes_wait {
        diagnostics.error(&later.place, format!("{what}: {WAITS}"));
    } else {
        let rest = "a file that is open through both is not delegated";
        diagnostics.warning(&later.place, format!("{what}: {rest}"));
    }
}
