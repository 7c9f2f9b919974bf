use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Export, Plan};

/// The properties that are the same at two servers that serve an export from the same files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportMark {
    /// The handle of its top directory, as clients know it. It depends on the export's number, on
    /// the key of the handles and on the file system.
    pub top: Box<[u8]>,
    /// The number of its volume.
    pub volume: u64,
    /// The file number of its top directory.
    pub fileid: u64,
    /// The change attribute of its top directory, which differs in a copy.
    pub change: u64,
}

impl Plan {
    /// Returns the mark of the export of a path, for another server.
    ///
    /// # Errors
    /// The reason in words why it cannot be moved.
    pub fn export_mark(&self, path: &Path) -> Result<ExportMark, String> {
        let shown = path.display();
        let export = self.export_at(path);
        let export = export.ok_or_else(|| format!("no export has the path {shown}"))?;
        if let Some(referral) = export.referral() {
            return Err(format!("{shown} is not served here: its files are at {referral}"));
        }
        if export.settings().is_moving {
            return Err(format!("{shown} is on its way to another server already"));
        }
        if self.stores_data() || export.placement().is_some() {
            return Err(format!(
                "{shown} cannot move: it has a [[placement]], or this server is a data server"
            ));
        }
        if export.settings().crosses_mounts {
            return Err(format!("{shown} has the option crossmnt: it would be several volumes"));
        }
        let top = export.top();
        let attributes = export.fs().getattr(&top);
        let attributes =
            attributes.map_err(|status| format!("{shown} cannot be read: {status}"))?;
        Ok(ExportMark {
            top: self.seal(export.id(), &top).bytes().into(),
            volume: export.volume(),
            fileid: attributes.fileid,
            change: attributes.change,
        })
    }

    /// Returns the numbers of the exports at these paths.
    #[must_use]
    pub fn ids_of(&self, paths: &[PathBuf]) -> Vec<u32> {
        self.exports_at(paths).map(|export| export.id().0).collect()
    }

    /// Returns the volume of the first export at these paths that there is.
    #[must_use]
    pub fn volume_of(&self, paths: &[PathBuf]) -> Option<u64> {
        self.exports_at(paths).next().map(|export| export.volume())
    }

    /// Returns the exports at these paths.
    pub(crate) fn exports_at<'p>(
        &'p self,
        paths: &'p [PathBuf],
    ) -> impl Iterator<Item = &'p Arc<Export>> {
        self.exports().iter().filter(|export| paths.iter().any(|path| path == export.path()))
    }

    /// Returns the paths of the exports that are served here, by their volume.
    #[must_use]
    pub fn by_volume(&self) -> BTreeMap<u64, Vec<PathBuf>> {
        let mut volumes = BTreeMap::<u64, Vec<PathBuf>>::new();
        for export in self.exports().iter().filter(|export| export.referral().is_none()) {
            volumes.entry(export.volume()).or_default().push(export.path().to_owned());
        }
        volumes
    }

    /// Returns the paths of all exports that are served here from a volume.
    pub fn exports_of(&self, volume: u64) -> impl Iterator<Item = &Path> {
        let here = self
            .exports()
            .iter()
            .filter(move |export| export.referral().is_none() && export.volume() == volume);
        here.map(|export| export.path())
    }
}
