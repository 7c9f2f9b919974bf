//! Exports that show the same files, as their opened file systems tell.

use std::path::Path;

use comity_vfs::{Fs, Handle};

use crate::Location;
use crate::diagnostic::Diagnostics;
use crate::export_spec::ExportSpec;

/// The directories of the exports that were opened so far.
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
    /// Takes another export; says if it shows files that one of the others shows, too.
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
    /// Describes how two directories of a volume overlap, if files of one are files of the other.
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
