//! The places of files, as the labels of their data files tell them.

use std::time::Instant;

use comity_vfs::{
    Cred, FileType, Handle, Name, NotRebuilt, Rebuild, RebuildOutcome, RebuiltFile, RebuiltPage,
    Result, Status,
};

use crate::label::{Label, placement_name};
use crate::limits::{CHECK_TIME_MAX, REBUILT_MAX};
use crate::own_data::has_own_data;
use crate::placed::Placed;
use crate::stored::StoredEntries;
use crate::tree_place::{TreePlace, tree_place};

/// The file that a label is about.
enum LabelledFile {
    /// It is the file from which the label was written.
    ByHandle(Handle),
    /// It has the path that the label names.
    ByPath(Handle),
    /// Nothing has that path.
    Nothing,
}

impl LabelledFile {
    const fn file(&self) -> Option<&Handle> {
        match self {
            Self::ByHandle(file) | Self::ByPath(file) => Some(file),
            Self::Nothing => None,
        }
    }
}

impl Placed {
    /// Gives files on a page of a data server their places back; see
    /// [`comity_vfs::Placement::rebuild`].
    pub(crate) fn rebuild_page(
        &self,
        server: &str,
        after: u64,
        how: Rebuild<'_>,
    ) -> Result<RebuiltPage> {
        let begun = Instant::now();
        let StoredEntries { entries, next } =
            self.files.stored_entries(server, after, REBUILT_MAX)?;
        let mut page = RebuiltPage { files: Vec::new(), next };
        let mut left = entries.into_iter();
        for (name, cookie) in left.by_ref() {
            page.files.push(self.rebuild_one((server, name), how));
            if begun.elapsed() > CHECK_TIME_MAX {
                page.next = (left.len() > 0).then_some(cookie).or(page.next);
                break;
            }
        }
        Ok(page)
    }

    fn rebuild_one(
        &self,
        (server, stored_name): (&str, Box<[u8]>),
        how: Rebuild<'_>,
    ) -> RebuiltFile {
        let of = placement_name(how.of.unwrap_or(&self.settings.name));
        let left = |why| (Box::default(), RebuildOutcome::Left(why));
        let (path, outcome) = match self.read_label(server, &stored_name) {
            Ok(label) if *label.placement != *of => {
                (label.placement, RebuildOutcome::Left(NotRebuilt::OtherPlacement))
            }
            Ok(label) if how.except.iter().any(|name| name.as_bytes() == &*stored_name) => {
                (label.path, RebuildOutcome::Left(NotRebuilt::SharedPath))
            }
            Ok(label) => {
                let outcome = self.restore(&label, how.changes);
                let outcome = outcome.unwrap_or_else(RebuildOutcome::Left);
                (self.path_now(label, outcome), outcome)
            }
            Err(why) => left(why),
        };
        RebuiltFile { stored_name, path, outcome }
    }

    /// The path of a file that has got its place; it may have been renamed since it was labelled.
    fn path_now(&self, label: Label, outcome: RebuildOutcome) -> Box<[u8]> {
        let file = (outcome == RebuildOutcome::Placed).then_some(&label.record.file);
        let path = file.and_then(|file| self.known.names.path(&*self.below, file).ok());
        path.map_or(label.path, Into::into)
    }

    /// Reads the label of a data file, which must be about this data file.
    fn read_label(
        &self,
        server: &str,
        stored_name: &[u8],
    ) -> std::result::Result<Label, NotRebuilt> {
        let label = self.files.stored_label(server, stored_name)?;
        let label = Label::decode(&self.key, &label).ok_or(NotRebuilt::ForeignLabel)?;
        let of_server = label.record.servers.get(usize::from(label.at));
        let is_own = label.record.name().as_bytes() == stored_name
            && of_server.is_some_and(|it| **it == *server);
        if is_own { Ok(label) } else { Err(NotRebuilt::ForeignLabel) }
    }

    /// Gives the file of a label its place, and creates it if it is gone.
    fn restore(
        &self,
        label: &Label,
        changes: bool,
    ) -> std::result::Result<RebuildOutcome, NotRebuilt> {
        let found = self.find_labelled(label)?;
        if let Some(file) = found.file() {
            if self.has_place(&label.record, file)? {
                return Ok(RebuildOutcome::Kept);
            }
            self.may_be_placed(&found, label)?;
        }
        let stored = self.files.stored_bytes(&label.record)?;
        match found.file() {
            Some(file) if changes => self.place_again(file, &label.record, stored)?,
            None if changes => self.create_again(label, stored)?,
            _ => {}
        }
        let is_there = found.file().is_some();
        Ok(if is_there { RebuildOutcome::Placed } else { RebuildOutcome::Created })
    }

    /// Refuses a file whose bytes could be lost, or that would show the bytes of another owner.
    fn may_be_placed(
        &self,
        found: &LabelledFile,
        label: &Label,
    ) -> std::result::Result<(), NotRebuilt> {
        let Some(file) = found.file() else { return Ok(()) };
        let is_other = matches!(found, LabelledFile::ByPath(_))
            && self.below.getattr(file)?.uid != label.owner.0;
        if is_other {
            return Err(NotRebuilt::OtherOwner);
        }
        if has_own_data(&*self.below, file)? { Err(NotRebuilt::OwnData) } else { Ok(()) }
    }

    /// Finds the file of a label. After a copy of a folder, the file from which the label was
    /// written may be in another folder of the same disk.
    fn find_labelled(&self, label: &Label) -> std::result::Result<LabelledFile, NotRebuilt> {
        let file = label.record.file;
        let at_path = self.at_path(&label.path);
        if at_path == Ok(Some(file)) {
            return Ok(LabelledFile::ByHandle(file));
        }
        let place = match self.below.getattr(&file) {
            Ok(attr) if attr.file_type == FileType::Regular => {
                Some(tree_place(&*self.below, &file)?)
            }
            Ok(_) | Err(Status::Stale | Status::NoEnt | Status::BadHandle) => None,
            Err(status) => return Err(status.into()),
        };
        match (place, at_path?) {
            (Some(TreePlace::Inside), _) => Ok(LabelledFile::ByHandle(file)),
            // Two files with the same data files would remove each other's bytes.
            (Some(_), _) if self.has_place(&label.record, &file)? => Err(NotRebuilt::InUse),
            (_, Some(other)) => Ok(LabelledFile::ByPath(other)),
            (Some(TreePlace::Unknown), None) => Err(NotRebuilt::Elsewhere),
            (Some(TreePlace::Outside) | None, None) => Ok(LabelledFile::Nothing),
        }
    }

    /// Finds the regular file of a path; `None` if nothing is there.
    fn at_path(&self, path: &[u8]) -> std::result::Result<Option<Handle>, NotRebuilt> {
        if path.is_empty() {
            return Err(NotRebuilt::NoPath);
        }
        let mut at = self.below.root();
        for name in path.split(|byte| *byte == b'/') {
            let (dir, name) = (at, Name::new(name)?);
            match self.below.lookup(&Cred::root(), &dir, name) {
                Ok(entry) => {
                    at = entry.node.handle;
                    self.known.names.note(&at, (&dir, name));
                }
                Err(Status::NoEnt) => return Ok(None),
                Err(Status::NotDir) => return Err(NotRebuilt::OtherObject),
                Err(status) => return Err(status.into()),
            }
        }
        match self.below.getattr(&at)?.file_type {
            FileType::Regular => Ok(Some(at)),
            _ => Err(NotRebuilt::OtherObject),
        }
    }
}
