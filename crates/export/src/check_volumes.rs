//! Finds exports that show the same files, by their opened file systems.

use std::path::Path;

use comity_vfs::{Fs, Handle};

use crate::Location;
use crate::diagnostic::Diagnostics;
use crate::export_spec::ExportSpec;

/// The top directories of the exports that were opened so far.
#[derive(Debug, Default)]
pub(crate) struct Tops(Vec<Top>);

#[derive(Debug)]
struct Top {
    path: Box<Path>,
    place: Location,
    volume: u64,
    root: Handle,
}

impl Tops {
    /// Adds an export; warns if another export shows some of its files.
    pub(crate) fn add(&mut self, export: &ExportSpec, fs: &dyn Fs, diagnostics: &mut Diagnostics) {
        let (path, root) = (export.path.as_path().into(), fs.root());
        let top = Top { path, place: export.place.clone(), volume: fs.volume(&root), root };
        for other in self.0.iter().filter(|other| other.volume == top.volume) {
            let how = top.stands_to(other);
            if let Some(how) = how {
                let (path, other, place) = (top.path.display(), other.path.display(), &other.place);
                let what = format!(
                    "{path} {how} {other} ({place}): a file that is open through both is not \
                     delegated"
                );
                diagnostics.warning(&top.place, what);
            }
        }
        self.0.push(top);
    }
}

impl Top {
    /// Describes how two directories of a volume overlap, if they share files.
    fn stands_to(&self, other: &Self) -> Option<&'static str> {
        if self.root == other.root {
            Some("is the same directory as")
        } else if self.path.starts_with(&other.path) {
            Some("lies in")
        } else {
            other.path.starts_with(&self.path).then_some("holds")
        }
    }
}
