//! The comparison of placed files with their data files. It changes nothing.

use comity_vfs::{
    Attr, CheckedFile, CheckedPage, Cred, Disk, FileType, Handle, Name, Node, Result, Status,
    StripeFault,
};

use crate::holds::Use;
use crate::pages::VisitedPage;
use crate::placed::{ATTRIBUTE, Placed};
use crate::record::PlaceRecord;

impl Placed {
    /// Compares the placed files of a page of a directory with their data files.
    pub(crate) fn check_page(&self, directory: &Handle, after: u64) -> Result<CheckedPage> {
        let mut files = Vec::new();
        let VisitedPage { directories, next } =
            self.visit_page(directory, after, |name, node| {
                files.extend(self.check_file(name, node)?);
                Ok(())
            })?;
        Ok(CheckedPage { directories, files, next })
    }

    /// Compares a file with its data files; returns `None` if it is not placed, or gone.
    fn check_file(&self, name: Box<[u8]>, node: &Node<Disk>) -> Result<Option<CheckedFile>> {
        // A file that is not placed, or that moves at this moment, cannot be told apart yet.
        let hold = self.known.holds.hold(&node.handle, Use::Look);
        let value = self.below.getxattr(&Cred::root(), &node.handle, Name::new(ATTRIBUTE)?);
        let value = match value {
            Ok(value) => value,
            Err(Status::NoXattr | Status::NotSupp | Status::Stale | Status::NoEnt) => {
                return Ok(None);
            }
            Err(status) => return Err(status),
        };
        let record = PlaceRecord::decode(&self.key, &node.handle, &value);
        let faults = match &record {
            Some(_) if hold.is_err() => {
                vec![(None, StripeFault::Unchecked(Status::Delay))]
            }
            Some(record) => self.faults(record, node),
            None => vec![(None, StripeFault::DamagedPlace)],
        };
        let stored_name = record.as_ref().map(|record| record.name().into());
        let servers = record.map_or_else(Vec::new, |record| record.servers);
        let (handle, fileid) = (node.handle, node.attr.fileid);
        Ok(Some(CheckedFile { name, handle, fileid, stored_name, servers, faults }))
    }

    fn faults(
        &self,
        record: &PlaceRecord,
        node: &Node<Disk>,
    ) -> Vec<(Option<Box<str>>, StripeFault)> {
        // While the lock of the file is held, its size does not shrink.
        let _turn = self.lock(&node.handle);
        let Ok(before) = self.below.getattr(&node.handle) else { return Vec::new() };
        let servers = record.servers.iter().enumerate();
        let found = servers.filter_map(|(at, name)| {
            let fault = self.fault(record, at, (&node.handle, before.size))?;
            Some((Some(name.clone()), fault))
        });
        let has = record.servers.len();
        let few = self.wants(record).map(|wants| (None, StripeFault::FewMirrors { has, wants }));
        found.chain(few).collect()
    }

    /// Compares a file, which had a size before, with one of its data files.
    pub(crate) fn fault(
        &self,
        record: &PlaceRecord,
        at: usize,
        (file, before): (&Handle, u64),
    ) -> Option<StripeFault> {
        if record.broken().has(at) {
            return Some(StripeFault::BrokenMirror);
        }
        if !self.files.is_known(record, at) {
            return Some(StripeFault::UnknownServer);
        }
        let found = match self.files.look(record, at) {
            Ok(found) => found,
            Err(status) => return Some(StripeFault::Unchecked(status)),
        };
        let needs = record.length_on(at, before);
        let Some(Attr { file_type, size: has, .. }) = found else {
            return (needs > 0).then_some(StripeFault::Missing(needs));
        };
        if file_type != FileType::Regular {
            return Some(StripeFault::NoFile);
        }
        if has < needs {
            return Some(StripeFault::Short { has, needs });
        }
        // A writer may have extended the file meanwhile.
        let size = if has > before { self.below.getattr(file).ok()?.size } else { before };
        (has > size).then_some(StripeFault::Long { has, size })
    }
}
