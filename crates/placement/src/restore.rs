//! The steps by which a file gets the place that the labels of its data files tell. Labels are
//! written first and the place last, so that after a crash the rebuild can be repeated: until then
//! the file has no place, and all labels name it.

use std::sync::Arc;

use comity_vfs::{
    Create, Cred, Handle, Mode, Name, NotRebuilt, Result, SetAttr, SetTime, Status, XattrMode,
};

use crate::label::Label;
use crate::labels::WrittenLabels;
use crate::learn_size::StoredBytes;
use crate::own_data::has_own_data;
use crate::placed::{ATTRIBUTE, Placed};
use crate::record::PlaceRecord;

impl Placed {
    /// Records a place for a file that has no bytes of its own here.
    pub(crate) fn place_again(
        &self,
        file: &Handle,
        of: &PlaceRecord,
        stored: StoredBytes,
    ) -> std::result::Result<(), NotRebuilt> {
        let moving = self.known.holds.begin_move(file)?;
        moving.stop_all()?;
        let record = PlaceRecord { file: *file, ..of.clone() };
        self.label_all(&record, WrittenLabels::All)?;
        let _turn = self.lock(file);
        // A client may have placed the file before the move began.
        if self.has_place(&record, file)? {
            return Ok(());
        }
        let attr = self.below.getattr(file)?;
        let set = SetAttr {
            size: Some(attr.size.max(stored.end())),
            mtime: Some(SetTime::To(attr.mtime)),
            ..SetAttr::default()
        };
        self.below.setattr(&Cred::root(), file, &set, None)?;
        self.write_place(record)?;
        // A call that began before the place was written may have written to the file.
        if has_own_data(&*self.below, file)? {
            self.remove_place(file)?;
            return Err(NotRebuilt::OwnData);
        }
        self.below.commit(file)?;
        Ok(())
    }

    /// Creates a file that is gone, with the owner and the mode of the label and the times of its
    /// data files.
    pub(crate) fn create_again(
        &self,
        label: &Label,
        stored: StoredBytes,
    ) -> std::result::Result<(), NotRebuilt> {
        let (server, mut names) = (Cred::root(), label.path.split(|byte| *byte == b'/'));
        let last = Name::new(names.next_back().unwrap_or_default())?;
        let mut dir = self.below.root();
        for name in names {
            dir = self.directory(&dir, Name::new(name)?)?;
        }
        let private = SetAttr { mode: Some(Mode::new(0o600)), ..SetAttr::default() };
        let made = self.below.create(&server, &dir, last, &Create::Guarded(private))?;
        let file = made.value.handle;
        self.known.names.note(&file, (&dir, last));
        let done = self.equip(&file, label, stored);
        if done.is_err() {
            // The data files stay, so that the rebuild can be repeated.
            self.forget(&file);
            self.below.remove(&server, &dir, last)?;
        }
        Ok(done?)
    }

    /// Gives a new file what its label tells.
    fn equip(&self, file: &Handle, label: &Label, stored: StoredBytes) -> Result<()> {
        let set = SetAttr {
            uid: Some(label.owner.0),
            gid: Some(label.owner.1),
            size: Some(stored.end()),
            mtime: stored.written().map(SetTime::To),
            ..SetAttr::default()
        };
        self.below.setattr(&Cred::root(), file, &set, None)?;
        // A change of the owner clears bits of the mode.
        let mode = SetAttr { mode: Some(label.mode), ..SetAttr::default() };
        self.below.setattr(&Cred::root(), file, &mode, None)?;
        let record = PlaceRecord { file: *file, ..label.record.clone() };
        self.label_all(&record, WrittenLabels::All)?;
        let _turn = self.lock(file);
        self.write_place(record)?;
        self.below.commit(file).map(drop)
    }

    /// Returns whether a file has the place that a label tells.
    pub(crate) fn has_place(
        &self,
        of: &PlaceRecord,
        file: &Handle,
    ) -> std::result::Result<bool, NotRebuilt> {
        let value = match self.below.getxattr(&Cred::root(), file, Name::new(ATTRIBUTE)?) {
            Ok(value) => value,
            Err(Status::NoXattr) => return Ok(false),
            Err(status) => return Err(status.into()),
        };
        match PlaceRecord::decode(&self.key, file, &value) {
            Some(record) if record.number == of.number => Ok(true),
            Some(_) => Err(NotRebuilt::OtherPlace),
            // The file was copied from a backup, or its attribute is damaged.
            None => Ok(false),
        }
    }

    fn write_place(&self, record: PlaceRecord) -> Result<()> {
        let (file, name, value) = (record.file, Name::new(ATTRIBUTE)?, record.encode(&self.key));
        self.below.setxattr(&Cred::root(), &file, name, Some(&value), XattrMode::Either)?;
        self.known.records.insert(file, Some(Arc::new(record)));
        Ok(())
    }

    fn remove_place(&self, file: &Handle) -> Result<()> {
        let name = Name::new(ATTRIBUTE)?;
        self.below.setxattr(&Cred::root(), file, name, None, XattrMode::Replace)?;
        self.known.records.remove(file);
        Ok(())
    }

    /// Finds a directory, or creates it for root.
    fn directory(&self, dir: &Handle, name: Name<'_>) -> Result<Handle> {
        match self.below.lookup(&Cred::root(), dir, name) {
            Ok(entry) => Ok(entry.node.handle),
            Err(Status::NoEnt) => {
                let set = SetAttr { mode: Some(Mode::new(0o755)), ..SetAttr::default() };
                Ok(self.below.mkdir(&Cred::root(), dir, name, &set)?.value.handle)
            }
            Err(status) => Err(status),
        }
    }
}
