//! The labels of data files. They are written soon after a file has changed, by a thread of their
//! own, so that no client waits for them.

use comity_vfs::{Cred, Handle, LabelledPage, Name, Result, Status, XattrMode};

use crate::data_files::DataFiles;
use crate::holds::Use;
use crate::label::{LABEL_ATTRIBUTE, Label};
use crate::pages::VisitedPage;
use crate::placed::Placed;
use crate::record::{PlaceRecord, Spread};

/// The labels of a file that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenLabels {
    /// All: the file has changed.
    All,
    /// Those that are missing or differ.
    Old,
}

impl Placed {
    /// Writes the labels that are due; see [`comity_vfs::Placement::write_labels`].
    pub(crate) fn write_due_labels(&self) {
        for (file, named) in self.files.due_labels().take() {
            if let Some((dir, name)) = named {
                self.known.names.keep(&file, (dir, name));
            }
            match self.label_file(&file, WrittenLabels::All) {
                Ok(_) | Err(Status::Stale | Status::NoEnt) => {}
                Err(Status::Delay) => self.files.due_labels().note(&file),
                Err(status) => {
                    tracing::warn!(%status, "data files got no label; `comity placement label`");
                }
            }
        }
    }

    /// Writes the labels of a page of a directory; see [`comity_vfs::Placement::label`].
    pub(crate) fn label_page(&self, directory: &Handle, after: u64) -> Result<LabelledPage> {
        let (mut files, mut labels, mut failed) = (0, 0, Vec::new());
        let VisitedPage { directories, next } =
            self.visit_page(directory, after, |name, node| {
                self.known.names.note(&node.handle, (directory, Name::new(&name)?));
                match self.label_file(&node.handle, WrittenLabels::Old) {
                    Ok(None) | Err(Status::Stale | Status::NoEnt) => {}
                    Ok(Some(written)) => (files, labels) = (files + 1, labels + written),
                    Err(status) => failed.push((name, status)),
                }
                Ok(())
            })?;
        Ok(LabelledPage { directories, files, labels, failed, next })
    }

    /// Writes labels of a file in stripes; returns their number, or `None` for another file.
    fn label_file(&self, file: &Handle, which: WrittenLabels) -> Result<Option<u64>> {
        let Some(using) = self.using(file, Use::Look)? else { return Ok(None) };
        // Stock servers of NFSv3 have no extended attributes.
        match using.record.spread {
            Spread::Mirrors(_) => Ok(None),
            Spread::Stripes(_) => self.label_all(&using.record, which).map(Some),
        }
    }

    /// Writes the labels of a place; returns their number. A data server that fails does not keep
    /// the others from theirs.
    pub(crate) fn label_all(&self, record: &PlaceRecord, which: WrittenLabels) -> Result<u64> {
        let attr = self.below.getattr(&record.file)?;
        let path = self.known.names.path(&*self.below, &record.file).unwrap_or_default();
        let mut label = Label::new(&self.settings.name, record, &attr, &path);
        let mut outcome = Ok(0);
        for at in 0..record.servers.len() {
            label.at = at as u8;
            let written = self.files.label((record, at), &label.encode(&self.key), which);
            outcome = outcome.and_then(|sum| Ok(sum + u64::from(written?)));
        }
        outcome
    }
}

impl DataFiles {
    /// Gives a data file a label, if it exists; returns whether the label was written.
    fn label(
        &self,
        (record, at): (&PlaceRecord, usize),
        label: &[u8],
        which: WrittenLabels,
    ) -> Result<bool> {
        let Some(file) = self.find(record, at)? else { return Ok(false) };
        let (server, name) = (Cred::root(), Name::new(LABEL_ATTRIBUTE)?);
        if which == WrittenLabels::Old {
            match file.fs.getxattr(&server, &file.handle, name) {
                Ok(known) if *known == *label => return Ok(false),
                Ok(_) | Err(Status::NoXattr) => {}
                Err(status) => return Err(status),
            }
        }
        file.fs.setxattr(&server, &file.handle, name, Some(label), XattrMode::Either)?;
        Ok(true)
    }
}
