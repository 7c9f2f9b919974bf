//! The search for a file on data servers that are to be taken out of a placement.

use comity_vfs::{FileType, Handle, Result, Status};

use crate::limits::CHECK_ENTRIES_MAX;
use crate::placed::Placed;
use crate::record::PlaceRecord;

/// A file that lies on a data server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOnServer {
    /// The number of the file.
    pub fileid: u64,
    /// The name of the data server.
    pub server: Box<str>,
}

impl Placed {
    /// Returns a file that lies on one of the data servers of these names; `None` if there is none.
    /// It looks at all files. A file that is made meanwhile on such a data server may be missed, so
    /// the data servers must be draining.
    ///
    /// # Errors
    /// [`Status::Delay`]: a file is being moved, perhaps to such a data server; [`Status`]: a
    /// directory cannot be read.
    pub fn file_on(&self, servers: &[&str]) -> Result<Option<FileOnServer>> {
        if self.known.holds.has_moves() {
            return Err(Status::Delay);
        }
        // The rest of a directory waits below the directories found in it, so that no more than a
        // page of directories waits at each depth.
        let mut left = vec![(self.below.root(), 0)];
        while let Some((directory, after)) = left.pop() {
            let entries = match self.entries(&directory, after) {
                Ok(entries) => entries,
                // The directory was removed meanwhile.
                Err(Status::Stale | Status::NoEnt) => continue,
                Err(status) => return Err(status),
            };
            if let Some(last) = entries.last().filter(|_| entries.len() == CHECK_ENTRIES_MAX) {
                left.push((directory, last.cookie));
            }
            for node in entries.iter().filter_map(|entry| entry.node) {
                match node.attr.file_type {
                    FileType::Directory => left.push((node.handle, 0)),
                    FileType::Regular => {
                        if let Some(server) = self.server_among(servers, &node.handle)? {
                            return Ok(Some(FileOnServer { fileid: node.attr.fileid, server }));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// Returns the first of these data servers on which a file lies.
    fn server_among(&self, servers: &[&str], file: &Handle) -> Result<Option<Box<str>>> {
        let value = self.attribute(file)?;
        let record = value.and_then(|value| PlaceRecord::decode(&self.key, file, &value));
        let on = record.map_or_else(Vec::new, |record| record.servers);
        Ok(on.into_iter().find(|name| servers.contains(&&**name)))
    }
}
