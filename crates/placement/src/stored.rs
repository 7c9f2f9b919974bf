//! The data files as they are on data servers, without the cache of their handles.

use std::ops::ControlFlow;

use comity_vfs::{Attr, Cred, Disk, FileType, Listed, Name, Result, Status, StoredPage};

use crate::data_files::DataFiles;
use crate::limits::STORED_NAMES_MAX;
use crate::record::PlaceRecord;

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
        let fs = self.named(server).ok_or(Status::NoEnt)?.files.reach()?;
        let (mut names, mut seen, mut last) = (Vec::new(), 0, after);
        fs.readdir(&Cred::root(), &fs.root(), after, Listed::Nodes, &mut |entry| {
            (seen, last) = (seen + 1, entry.cookie);
            if entry.node.is_none_or(|node| node.attr.file_type == FileType::Regular) {
                names.push(entry.name.bytes().into());
            }
            match seen < STORED_NAMES_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(StoredPage { names, next: (seen == STORED_NAMES_MAX).then_some(last) })
    }
}
