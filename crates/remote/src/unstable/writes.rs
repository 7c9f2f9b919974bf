use std::collections::HashMap;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Handle, Result, Status, WaitingThreads};

use super::copies::Copies;
use super::file_writes::{Begun, FileWrites};
use super::kept_ranges::{KeptData, WriteVerifier};
use crate::compound::OpenOwner;
use crate::limits::UNSTABLE_BYTES_MAX;

/// Written data of all files that is not known to be stable.
#[derive(Debug, Default)]
pub(crate) struct UnstableWrites(Mutex<WritesState>);

#[derive(Debug, Default)]
struct WritesState {
    files: HashMap<Handle, FileWrites>,
    bytes: usize,
    serial: u64,
    /// Number of losses of data, of all files.
    losses: u64,
    /// True while a thread commits a file to make room.
    is_relieving: bool,
    /// Threads that wait for a change.
    crowd: WaitingThreads,
}

/// Permission to write a file; several threads may have one.
#[derive(Debug)]
pub(crate) struct WriteTurn<'w> {
    writes: &'w UnstableWrites,
    node: Handle,
}

/// Permission to write lost data of a file again; no other thread writes to the file meanwhile.
#[derive(Debug)]
pub(crate) struct RewriteTurn<'w> {
    writes: &'w UnstableWrites,
    node: Handle,
    /// The lost data with its offsets.
    lost: Vec<(u64, KeptData)>,
    /// The lost copies, which cannot be written again; see [`FileWrites::copies`].
    lost_copies: Copies,
    /// The error of a write whose data is lost.
    failure: Option<Status>,
}

/// Permission to commit a file to make room.
#[derive(Debug)]
pub(crate) struct ReliefTurn<'w> {
    writes: &'w UnstableWrites,
    /// The file.
    pub(crate) node: Handle,
}

/// A COMMIT under way, which covers the writes answered before it began.
#[derive(Debug)]
pub(crate) struct CommitTurn<'w> {
    writes: &'w UnstableWrites,
    node: Handle,
    begun: Begun,
    /// The caller that wrote last; `None` if there are no writes.
    pub(crate) owner: Option<Arc<OpenOwner>>,
}

impl UnstableWrites {
    /// Waits until a file may be written.
    ///
    /// # Errors
    /// [`Status::Interrupted`].
    pub(crate) fn begin_write(&self, node: &Handle) -> Result<WriteTurn<'_>> {
        self.once_rewritten(node, |state| state.files.entry(*node).or_default().writers += 1)?;
        Ok(WriteTurn { writes: self, node: *node })
    }

    /// Waits until `bytes` more may be kept. If a file must be committed first, returns the
    /// permission to do so.
    ///
    /// # Errors
    /// [`Status::Interrupted`].
    pub(crate) fn begin_relief(&self, bytes: usize) -> Result<Option<ReliefTurn<'_>>> {
        self.wait(|state| {
            if state.bytes + bytes <= UNSTABLE_BYTES_MAX || state.bytes == 0 {
                return Some(None);
            }
            if state.is_relieving {
                return None;
            }
            state.is_relieving = true;
            let largest = state.files.iter().max_by_key(|(_, file)| file.kept.bytes());
            Some(largest.map(|(node, _)| ReliefTurn { writes: self, node: *node }))
        })
    }

    /// Returns whether a COMMIT of the file would store or report anything.
    pub(crate) fn awaits_commit(&self, node: &Handle) -> bool {
        self.state().files.get(node).is_some_and(|file| {
            file.has_unstable() || file.is_rewriting || file.has_unreported_loss()
        })
    }

    /// Begins a COMMIT of a file, once no lost data of it is being written again.
    ///
    /// # Errors
    /// A loss of data that was not reported yet; [`Status::Interrupted`].
    pub(super) fn begin_commit(&self, node: &Handle) -> Result<CommitTurn<'_>> {
        self.begin(node, FileWrites::report_unreported_loss)
    }

    /// Begins a COMMIT that makes room. A loss of data is left for a caller's COMMIT to report.
    ///
    /// # Errors
    /// [`Status::Interrupted`].
    pub(super) fn begin_commit_for_room(&self, node: &Handle) -> Result<CommitTurn<'_>> {
        self.begin(node, |_| Ok(()))
    }

    fn begin(
        &self,
        node: &Handle,
        check: impl Fn(&mut FileWrites) -> Result<()>,
    ) -> Result<CommitTurn<'_>> {
        let (begun, owner) = self.once_rewritten(node, |state| {
            state.files.entry(*node).or_default();
            let owner = state.change(node, |file| check(file).map(|()| file.begin_commit()));
            (Begun { serial: state.serial, losses: state.losses }, owner)
        })?;
        let owner = owner.transpose()?.flatten();
        Ok(CommitTurn { writes: self, node: *node, begun, owner })
    }

    /// Forgets data of a file that was overwritten or truncated, from an offset to another.
    pub(crate) fn cut(&self, node: &Handle, (start, end): (u64, u64)) {
        self.state().change(node, |file| file.kept.cut(start, end));
    }

    /// Forgets a file that no longer exists.
    pub(crate) fn forget(&self, node: &Handle) {
        self.state().change(node, FileWrites::forget);
    }

    /// Notes that the server has copied unstable data into a file.
    pub(crate) fn copied(&self, node: &Handle, verifier: WriteVerifier) {
        let mut state = self.state();
        state.serial += 1;
        let serial = state.serial;
        state.files.entry(*node).or_default().copies.add(verifier, (serial, serial));
    }

    /// Memory for unstable data, in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Waits until no lost data of a file is being written again, and then does `work`.
    fn once_rewritten<T>(
        &self,
        node: &Handle,
        mut work: impl FnMut(&mut WritesState) -> T,
    ) -> Result<T> {
        self.wait(|state| (!state.is_rewriting(node)).then(|| work(state)))
    }

    /// Waits until `attempt` succeeds; it is repeated after each change.
    fn wait<T>(&self, attempt: impl FnMut(&mut WritesState) -> Option<T>) -> Result<T> {
        WaitingThreads::wait(&self.0, |state| &mut state.crowd, attempt)
    }

    fn state(&self) -> MutexGuard<'_, WritesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteTurn<'_> {
    /// Keeps written data that is not stable.
    pub(crate) fn keep(
        &self,
        offset: u64,
        data: Vec<u8>,
        verifier: WriteVerifier,
        owner: &Arc<OpenOwner>,
    ) {
        let mut state = self.writes.state();
        state.serial += 1;
        let piece = KeptData { data, verifier, owner: Arc::clone(owner), serial: state.serial };
        state.change(&self.node, |file| file.kept.put(offset, piece));
    }
}

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.writes.state();
        state.change(&self.node, |file| file.writers -= 1);
        state.wake();
    }
}

impl RewriteTurn<'_> {
    /// Writes the lost data again with FILE_SYNC.
    ///
    /// # Errors
    /// The first error of `write`, whose piece is lost, or [`Status::Io`] if data that the server
    /// copied is lost; other commits under way report it, too. After [`Status::Interrupted`] or
    /// [`Status::Delay`] a later commit goes on.
    pub(crate) fn rewrite(
        mut self,
        mut write: impl FnMut(u64, &KeptData) -> Result<()>,
    ) -> Result<()> {
        while let Some((offset, piece)) = self.lost.pop() {
            match write(offset, &piece) {
                Ok(()) => {}
                Err(status @ (Status::Interrupted | Status::Delay)) => {
                    self.lost.push((offset, piece));
                    return Err(status);
                }
                Err(status) => return self.fail(status),
            }
        }
        if self.lost_copies.is_empty() { Ok(()) } else { self.fail(Status::Io) }
    }

    fn fail(&mut self, status: Status) -> Result<()> {
        self.lost_copies = Copies::default();
        self.failure = Some(status);
        Err(status)
    }
}

impl Drop for RewriteTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.writes.state();
        let (lost, copies) = (take(&mut self.lost), take(&mut self.lost_copies));
        if let Some(status) = self.failure {
            state.lose(&self.node, status, true);
        }
        state.change(&self.node, |file| {
            file.is_rewriting = false;
            lost.into_iter().for_each(|(offset, piece)| file.kept.put(offset, piece));
            file.copies.join(copies);
        });
        state.wake();
    }
}

impl<'w> CommitTurn<'w> {
    /// Ends a COMMIT that succeeded: forgets the data that is now stable. If the verifier shows
    /// that data was lost, returns the permission to write it again.
    ///
    /// # Errors
    /// The loss of data of the file since the COMMIT began, which another thread met;
    /// [`Status::Interrupted`].
    pub(crate) fn end(&self, verifier: WriteVerifier) -> Result<Option<RewriteTurn<'w>>> {
        // Data that another thread writes again is not stable before that ends.
        let is_lost = self.writes.once_rewritten(&self.node, |state| {
            state.change(&self.node, |file| file.end_commit(self.begun, verifier))
        })?;
        match is_lost.transpose()? {
            Some(true) => self.begin_rewrite(verifier).map(Some),
            Some(false) | None => Ok(None),
        }
    }

    /// Waits until no thread writes to the file, and takes its lost data. Another thread may have
    /// written the data again meanwhile, or failed to.
    fn begin_rewrite(&self, verifier: WriteVerifier) -> Result<RewriteTurn<'w>> {
        let (writes, node) = (self.writes, self.node);
        let (lost, lost_copies) = writes.wait(|state| {
            state.files.entry(node).or_default();
            state.change(&node, |file| file.begin_rewrite(self.begun, verifier)).flatten()
        })??;
        Ok(RewriteTurn { writes, node, lost, lost_copies, failure: None })
    }
}

impl Drop for CommitTurn<'_> {
    fn drop(&mut self) {
        self.writes.state().change(&self.node, |file| file.commits -= 1);
    }
}

impl ReliefTurn<'_> {
    /// Handles a failed commit: the file's unstable data is lost, and the next commit reports it.
    pub(crate) fn fail(self, status: Status) {
        let mut state = self.writes.state();
        state.change(&self.node, FileWrites::forget);
        if status != Status::Stale {
            state.lose(&self.node, status, false);
        }
    }
}

impl Drop for ReliefTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.writes.state();
        state.is_relieving = false;
        state.wake();
    }
}

impl WritesState {
    /// Applies `work` to the writes of a file, if there are any.
    fn change<T>(&mut self, node: &Handle, work: impl FnOnce(&mut FileWrites) -> T) -> Option<T> {
        let file = self.files.get_mut(node)?;
        let before = file.kept.bytes();
        let done = work(file);
        self.bytes = self.bytes - before + file.kept.bytes();
        if file.is_idle() {
            self.files.remove(node);
        }
        Some(done)
    }

    /// Notes that data of a file is lost.
    fn lose(&mut self, node: &Handle, status: Status, is_reported: bool) {
        self.losses += 1;
        self.files.entry(*node).or_default().lose(self.losses, status, is_reported);
    }

    fn is_rewriting(&self, node: &Handle) -> bool {
        self.files.get(node).is_some_and(|file| file.is_rewriting)
    }

    fn wake(&mut self) {
        self.crowd.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Waits until a condition holds; panics after ten seconds.
    fn until(what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !holds() {
            assert!(Instant::now() < deadline, "not within 10 s: {what}");
            thread::yield_now();
        }
    }

    fn owner() -> Arc<OpenOwner> {
        Arc::new(OpenOwner { id: 1, credential: Vec::new() })
    }

    fn node(byte: u8) -> Handle {
        Handle::new(&[byte]).unwrap()
    }

    fn write(writes: &UnstableWrites, at: u64, data: &[u8], verifier: u8) {
        let turn = writes.begin_write(&node(1)).unwrap();
        turn.keep(at, data.to_vec(), [verifier; 8], &owner());
    }

    fn commit(start: &CommitTurn<'_>, verifier: u8) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut lost = Vec::new();
        if let Some(turn) = start.end([verifier; 8])? {
            turn.rewrite(|at, piece| {
                lost.push((at, piece.data.clone()));
                Ok(())
            })?;
        }
        lost.sort_unstable();
        Ok(lost)
    }

    #[test]
    fn a_commit_covers_the_writes_before_it_began() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"before", 1);
        let start = writes.begin_commit(&node(1)).unwrap();
        write(&writes, 10, b"after", 1);
        assert_eq!(commit(&start, 1), Ok(Vec::new()));
        let later = writes.begin_commit(&node(1)).unwrap();
        assert_eq!(commit(&later, 2), Ok(vec![(10, b"after".to_vec())]));
        drop((start, later));
        assert_eq!((writes.bytes(), writes.state().files.len()), (0, 0));
    }

    #[test]
    fn overwritten_data_is_not_written_again() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"older data", 1);
        write(&writes, 5, b"new", 2);
        writes.cut(&node(1), (9, u64::MAX));
        let start = writes.begin_commit(&node(1)).unwrap();
        let lost = vec![(0, b"older".to_vec()), (8, b"t".to_vec())];
        assert_eq!(commit(&start, 2), Ok(lost));
    }

    #[test]
    fn a_lost_copy_is_reported_once() {
        let writes = UnstableWrites::default();
        writes.copied(&node(1), [1; 8]);
        writes.copied(&node(1), [2; 8]);
        let start = writes.begin_commit(&node(1)).unwrap();
        assert_eq!(commit(&start, 2), Err(Status::Io));
        let later = writes.begin_commit(&node(1)).unwrap();
        assert_eq!(commit(&later, 2), Ok(Vec::new()));
    }

    /// The serial number of the later copy does not hide the earlier one.
    #[test]
    fn a_lost_copy_is_reported_by_the_commit_that_covers_it() {
        let writes = UnstableWrites::default();
        writes.copied(&node(1), [1; 8]);
        let start = writes.begin_commit(&node(1)).unwrap();
        writes.copied(&node(1), [1; 8]);
        assert_eq!(commit(&start, 2), Err(Status::Io));
        writes.copied(&node(1), [2; 8]);
        let start = writes.begin_commit(&node(1)).unwrap();
        writes.copied(&node(1), [2; 8]);
        assert_eq!(commit(&start, 2), Ok(Vec::new()), "the first copy is stable");
        assert_eq!(commit(&start, 3), Ok(Vec::new()), "it covers the first copy only");
        let later = writes.begin_commit(&node(1)).unwrap();
        assert_eq!(commit(&later, 3), Err(Status::Io));
    }

    #[test]
    fn a_loss_is_reported_by_a_commit_that_waits_to_write_again() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"data", 1);
        let starts = [1, 2].map(|_| writes.begin_commit(&node(1)).unwrap());
        let writer = writes.begin_write(&node(1)).unwrap();
        thread::scope(|scope| {
            let fail = |start: &CommitTurn<'_>| {
                let turn = start.end([2; 8])?;
                turn.map_or(Ok(()), |turn| turn.rewrite(|_, _| Err(Status::NoSpc)))
            };
            let threads = starts.each_ref().map(|start| scope.spawn(move || fail(start)));
            until("both wait", || writes.state().crowd.len() == 2);
            drop(writer);
            for thread in threads {
                assert_eq!(thread.join().unwrap(), Err(Status::NoSpc));
            }
        });
    }

    #[test]
    fn a_commit_that_makes_room_leaves_a_loss_to_be_reported() {
        let writes = UnstableWrites::default();
        write(&writes, 0, &vec![1; UNSTABLE_BYTES_MAX], 1);
        writes.begin_relief(1).unwrap().unwrap().fail(Status::NoSpc);
        drop(writes.begin_commit_for_room(&node(1)).unwrap());
        assert_eq!(writes.begin_commit(&node(1)).unwrap_err(), Status::NoSpc);
    }

    #[test]
    fn a_lost_copy_is_reported_after_a_rewrite_that_was_interrupted() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"data", 1);
        writes.copied(&node(1), [1; 8]);
        let start = writes.begin_commit(&node(1)).unwrap();
        let turn = start.end([2; 8]).unwrap().unwrap();
        assert_eq!(turn.rewrite(|_, _| Err(Status::Delay)), Err(Status::Delay));
        let later = writes.begin_commit(&node(1)).unwrap();
        assert_eq!(commit(&later, 2), Err(Status::Io));
    }

    /// Otherwise the caller of the other commit would take its data for stable.
    #[test]
    fn a_loss_is_reported_by_each_commit_that_was_under_way() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"data", 1);
        let starts = [1, 2].map(|_| writes.begin_commit(&node(1)).unwrap());
        let turn = starts[0].end([2; 8]).unwrap().unwrap();
        assert_eq!(turn.rewrite(|_, _| Err(Status::NoSpc)), Err(Status::NoSpc));
        assert_eq!(commit(&starts[1], 2), Err(Status::NoSpc));
        drop(starts);
        let later = writes.begin_commit(&node(1)).unwrap();
        assert_eq!(commit(&later, 2), Ok(Vec::new()));
        drop(later);
        assert_eq!(writes.state().files.len(), 0);
    }

    #[test]
    fn an_interrupted_rewrite_loses_nothing_and_a_failed_one_loses_a_piece() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"one", 1);
        write(&writes, 5, b"two", 1);
        let start = writes.begin_commit(&node(1)).unwrap();
        for status in [Status::Interrupted, Status::NoSpc] {
            let turn = start.end([2; 8]).unwrap().unwrap();
            assert_eq!(turn.rewrite(|_, _| Err(status)), Err(status));
        }
        let later = writes.begin_commit(&node(1)).unwrap();
        assert_eq!(commit(&later, 2).unwrap().len(), 1);
    }

    #[test]
    fn no_thread_writes_while_lost_data_is_written_again() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"lost", 1);
        let start = writes.begin_commit(&node(1)).unwrap();
        let turn = writes.begin_write(&node(1)).unwrap();
        let rewritten = Mutex::new(false);
        thread::scope(|scope| {
            let committer = scope.spawn(|| {
                let turn = start.end([2; 8]).unwrap().unwrap();
                scope.spawn(|| {
                    drop(writes.begin_write(&node(1)).unwrap());
                    assert!(*rewritten.lock().unwrap());
                });
                turn.rewrite(|_, _| {
                    *rewritten.lock().unwrap() = true;
                    Ok(())
                })
            });
            until("the commit waits", || !writes.state().crowd.is_empty());
            assert!(!*rewritten.lock().unwrap());
            drop(turn);
            committer.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_commit_waits_while_lost_data_is_written_again() {
        let writes = UnstableWrites::default();
        write(&writes, 0, b"lost", 1);
        let starts = [1, 2].map(|_| writes.begin_commit(&node(1)).unwrap());
        let turn = starts[0].end([2; 8]).unwrap().unwrap();
        let rewritten = Mutex::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(starts[1].end([2; 8]).unwrap().is_none());
                assert!(*rewritten.lock().unwrap(), "a commit that began before");
            });
            scope.spawn(|| {
                writes.begin_commit(&node(1)).unwrap();
                assert!(*rewritten.lock().unwrap(), "a commit that begins meanwhile");
            });
            // Without the wait, both threads end before the second is counted.
            let until = Instant::now() + Duration::from_secs(1);
            while writes.state().crowd.len() < 2 && Instant::now() < until {
                thread::yield_now();
            }
            turn.rewrite(|_, _| {
                *rewritten.lock().unwrap() = true;
                Ok(())
            })
            .unwrap();
        });
    }

    #[test]
    fn excess_unstable_data_is_committed_and_a_failure_is_reported_once() {
        let writes = UnstableWrites::default();
        assert!(writes.begin_relief(usize::MAX).unwrap().is_none(), "there is nothing to commit");
        write(&writes, 0, &vec![1; UNSTABLE_BYTES_MAX / 2], 1);
        assert!(writes.begin_relief(UNSTABLE_BYTES_MAX / 4).unwrap().is_none());
        let relief = writes.begin_relief(UNSTABLE_BYTES_MAX).unwrap().unwrap();
        assert_eq!(relief.node, node(1));
        relief.fail(Status::NoSpc);
        assert_eq!(writes.bytes(), 0);
        assert_eq!(writes.begin_commit(&node(1)).unwrap_err(), Status::NoSpc);
        assert!(writes.begin_commit(&node(1)).is_ok());
    }
}
