//! The data files as they are on data servers, without the cache of their handles.

use std::ops::ControlFlow;

use comity_vfs::{
    Attr, Cred, Disk, FileType, Listed, Name, NotRebuilt, Result, Status, StoredPage,
};

use crate::data_files::DataFiles;
use crate::label::LABEL_ATTRIBUTE;
use crate::limits::STORED_NAMES_MAX;
use crate::record::PlaceRecord;

/// Data files on a data server.
pub(crate) struct StoredEntries {
    /// Their names, each with the cookie after it.
    pub(crate) entries: Vec<(Box<[u8]>, u64)>,
    /// The cookie at which the next ones begin; `None` if these are the last ones.
    pub(crate) next: Option<u64>,
}

impl DataFiles {
    /// Returns the attributes of a file on one of its data servers; `None` if it is not there.
    pub(crate) fn look(&self, record: &PlaceRecord, at: usize) -> Result<Option<Attr<Disk>>> {
        let (name, fs) = (record.name(), self.server(record, at)?);
        match fs.lookup(&Cred::root(), &fs.root(), Name::new(name.as_bytes())?) {
            Ok(entry) => Ok(Some(entry.node.attr)),
            Err(Status::NoEnt) => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Returns a page of the names of the files in the folder of a data server.
    pub(crate) fn stored(&self, server: &str, after: u64) -> Result<StoredPage> {
        let StoredEntries { entries, next } =
            self.stored_entries(server, after, STORED_NAMES_MAX)?;
        Ok(StoredPage { names: entries.into_iter().map(|(name, _)| name).collect(), next })
    }

    /// Returns the data files among the next `max` entries of the folder of a data server.
    pub(crate) fn stored_entries(
        &self,
        server: &str,
        after: u64,
        max: usize,
    ) -> Result<StoredEntries> {
        let fs = self.named(server).ok_or(Status::NoEnt)?.files.reach()?;
        let (mut entries, mut seen, mut last) = (Vec::new(), 0, after);
        fs.readdir(&Cred::root(), &fs.root(), after, Listed::Nodes, &mut |entry| {
            (seen, last) = (seen + 1, entry.cookie);
            if entry.node.is_none_or(|node| node.attr.file_type == FileType::Regular) {
                entries.push((entry.name.bytes().into(), entry.cookie));
            }
            match seen < max {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(StoredEntries { entries, next: (seen == max).then_some(last) })
    }

    /// Returns the bytes of the label of a data file.
    pub(crate) fn stored_label(
        &self,
        server: &str,
        stored_name: &[u8],
    ) -> std::result::Result<Vec<u8>, NotRebuilt> {
        let fs = self.named(server).ok_or(Status::NoEnt)?.files.reach()?;
        let found = fs.lookup(&Cred::root(), &fs.root(), Name::new(stored_name)?)?;
        match fs.getxattr(&Cred::root(), &found.node.handle, Name::new(LABEL_ATTRIBUTE)?) {
            Ok(label) => Ok(label),
            Err(Status::NoXattr | Status::NotSupp) => Err(NotRebuilt::NoLabel),
            Err(status) => Err(status.into()),
        }
    }
}
