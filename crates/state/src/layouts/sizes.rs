//! Sizes of files that clients write by layouts, when they may have written without a LAYOUTCOMMIT
//! (RFC 8881, 12.5.4).

use std::time::Duration;

use crate::file::{File, SizeStep};
use crate::{At, Engine, FileKey, Record, Result, Stateid};

impl Engine {
    /// Returns a file whose data servers must be asked for its size. The shell reports by
    /// [`Engine::size_asked`] whether they have told it. A file whose layouts have to be fenced
    /// first is returned after that.
    #[must_use]
    pub fn poll_size(&self, now: Duration) -> Option<FileKey> {
        std::iter::from_fn(|| self.sizes.pop()).find(|key| self.begin_size_step(now, key))
    }

    /// Returns whether data servers must be asked for the size of a file.
    fn begin_size_step(&self, now: Duration, key: &FileKey) -> bool {
        let Some(file) = self.files.get(key) else { return false };
        let mut on_file = file.state();
        let step = on_file.layouts.begin_size_step();
        if step == Some(SizeStep::Forget) {
            self.record(Record::SizeKnown(file.key));
        }
        drop(on_file);
        self.files.let_go(now, &file);
        step == Some(SizeStep::Ask)
    }

    /// Notes whether the data servers of a file have told its size. If they have not,
    /// [`Engine::poll_size`] returns the file again.
    pub fn size_asked(&self, key: &FileKey, done: bool) {
        let Some(file) = self.files.get(key) else { return };
        if file.state().layouts.size_asked(done) {
            self.sizes.push(file.key);
        }
    }

    /// Returns whether clients may have written beyond the end of a file without saying so, and
    /// data servers have not been asked yet.
    #[must_use]
    pub fn is_size_doubtful(&self, key: &FileKey) -> bool {
        self.files.look(key, |file| file.state().layouts.is_size_doubtful()).unwrap_or(false)
    }

    /// Returns whether clients may write to the data servers of a file: from the first layout for
    /// writing until there is none, the fence is raised if one is due, and the size is known.
    #[must_use]
    pub fn may_be_written_by_layouts(&self, key: &FileKey) -> bool {
        self.files.look(key, |file| file.state().layouts.may_be_written()).unwrap_or(false)
    }

    /// Notes that a LAYOUTCOMMIT has told how far a client has written (RFC 8881, 18.42), so that
    /// the return of its layout leaves no doubt.
    ///
    /// # Errors
    /// As [`Engine::check_layoutcommit`].
    pub fn layout_committed(&self, (sender, key): At<'_>, stateid: &Stateid) -> Result<()> {
        let found = self.find(&sender, stateid)?;
        let mut state = found.client.live()?;
        found.layout(&state, key, stateid)?;
        state.holdings.change_layout(found.number, |layout| layout.is_committed = true)
    }

    /// Notes a new layout for writing. Before it leaves the server, stable storage has a record of
    /// the file.
    pub(crate) fn begin_writing(&self, file: &File) {
        let mut on_file = file.state();
        // The file stays locked, so that the records of a file are in order.
        if on_file.layouts.begin_writing() {
            self.record(Record::SizeOpen(file.key));
        }
    }
}
