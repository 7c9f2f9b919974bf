use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use comity_vfs::Interrupt;

use crate::calls::CallBytes;

/// Most records that are sent with one system call.
const BATCH_MAX: usize = 16;

/// The records to send over one connection. A thread that adds a record sends the whole queue,
/// unless another thread is already sending.
#[derive(Default)]
pub(super) struct SendQueue {
    queue: Mutex<QueuedRecords>,
    writer: Mutex<Option<Box<dyn Write + Send>>>,
}

#[derive(Default)]
struct QueuedRecords {
    /// The generation of the connection that carries the records.
    generation: u64,
    records: VecDeque<CallBytes>,
    /// Bytes of the first record that have been sent.
    sent: usize,
    close: Option<Box<dyn Fn() + Send + Sync>>,
}

impl QueuedRecords {
    fn end(&mut self) {
        self.records.clear();
        self.sent = 0;
        if let Some(close) = self.close.take() {
            close();
        }
    }
}

/// The outcome of [`SendQueue::flush`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flushed {
    /// The queue is empty, or another thread is sending it.
    Done,
    /// The thread was interrupted; another thread must continue.
    Interrupted,
}

impl SendQueue {
    /// Begins to use a connection that was made.
    pub(super) fn open(
        &self,
        generation: u64,
        writer: Box<dyn Write + Send>,
        close: Box<dyn Fn() + Send + Sync>,
    ) {
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        *self.queue() =
            QueuedRecords { generation, close: Some(close), ..QueuedRecords::default() };
    }

    /// Ends the connection of this generation, if it is the current one, and drops its records.
    pub(super) fn close(&self, generation: u64) {
        let mut queue = self.queue();
        if queue.generation == generation {
            queue.end();
        }
    }

    /// Ends the current connection.
    pub(super) fn close_any(&self) {
        self.queue().end();
    }

    /// Adds a record; [`SendQueue::flush`] sends it.
    pub(super) fn push(&self, generation: u64, record: CallBytes) {
        let mut queue = self.queue();
        if queue.generation == generation && queue.close.is_some() {
            queue.records.push_back(record);
        }
    }

    /// Sends the whole queue, unless another thread is already sending it.
    pub(super) fn flush(&self) -> Flushed {
        while !self.queue().records.is_empty() {
            let mut writer = match self.writer.try_lock() {
                Ok(writer) => writer,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // The other thread checks the queue again after it releases the writer.
                Err(TryLockError::WouldBlock) => return Flushed::Done,
            };
            let Some(writer) = writer.as_mut() else { return Flushed::Done };
            match self.send_waiting(writer) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    return Flushed::Interrupted;
                }
                Err(_) => {
                    let generation = self.queue().generation;
                    self.close(generation);
                }
            }
        }
        Flushed::Done
    }

    fn send_waiting(&self, writer: &mut Box<dyn Write + Send>) -> io::Result<()> {
        loop {
            let (records, sent) = self.batch();
            if records.is_empty() {
                return Ok(());
            }
            let written = match write(writer, &records, sent) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if is_slow(&error) && Interrupt::is_raised() => {
                    return Err(ErrorKind::Interrupted.into());
                }
                Err(error) if is_slow(&error) => 0,
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                Err(error) => return Err(error),
            };
            self.advance(written);
        }
    }

    fn batch(&self) -> (Vec<CallBytes>, usize) {
        let queue = self.queue();
        (queue.records.iter().take(BATCH_MAX).cloned().collect(), queue.sent)
    }

    fn advance(&self, written: usize) {
        let mut queue = self.queue();
        queue.sent += written;
        while let Some(length) = queue.records.front().map(|record| record.len()) {
            if queue.sent < length {
                break;
            }
            queue.sent -= length;
            queue.records.pop_front();
        }
    }

    fn queue(&self) -> MutexGuard<'_, QueuedRecords> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes records; of the first one only the bytes after `sent`.
fn write(
    writer: &mut Box<dyn Write + Send>,
    records: &[CallBytes],
    sent: usize,
) -> io::Result<usize> {
    let starts = std::iter::once(sent).chain(std::iter::repeat(0));
    let rests = records.iter().zip(starts).map(|(record, start)| record.get(start..));
    let parts: Vec<IoSlice<'_>> =
        rests.map(|rest| IoSlice::new(rest.unwrap_or_default())).collect();
    writer.write_vectored(&parts)
}

fn is_slow(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar};

    use super::*;

    /// Accepts a few bytes with each call, and blocks while it is shut.
    #[derive(Clone, Default)]
    struct Pipe(Arc<(Mutex<PipeState>, Condvar)>);

    #[derive(Default)]
    struct PipeState {
        bytes: Vec<u8>,
        is_shut: bool,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.0.lock().unwrap();
            if state.is_shut {
                return Err(ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(3);
            state.bytes.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Pipe {
        fn shut(&self, is_shut: bool) {
            self.0.0.lock().unwrap().is_shut = is_shut;
        }

        fn bytes(&self) -> Vec<u8> {
            self.0.0.lock().unwrap().bytes.clone()
        }
    }

    fn record(bytes: &[u8]) -> CallBytes {
        Arc::new(bytes.to_vec())
    }

    fn open() -> (SendQueue, Pipe) {
        let (queue, pipe) = (SendQueue::default(), Pipe::default());
        queue.open(1, Box::new(pipe.clone()), Box::new(|| {}));
        (queue, pipe)
    }

    #[test]
    fn records_are_sent_whole_and_in_order_if_the_socket_accepts_few_bytes() {
        let (queue, pipe) = open();
        for part in ["one and ", "two and ", "three"] {
            queue.push(1, record(part.as_bytes()));
        }
        assert_eq!(queue.flush(), Flushed::Done);
        assert_eq!(pipe.bytes(), b"one and two and three");
    }

    #[test]
    fn an_interrupted_thread_leaves_the_rest_to_the_next() {
        let (queue, pipe) = open();
        pipe.shut(true);
        queue.push(1, record(b"all of it"));
        let scope = Interrupt::begin();
        scope.interrupt().raise();
        assert_eq!(queue.flush(), Flushed::Interrupted);
        drop(scope);
        pipe.shut(false);
        assert_eq!(queue.flush(), Flushed::Done);
        assert_eq!(pipe.bytes(), b"all of it");
    }

    #[test]
    fn records_for_an_ended_connection_are_not_sent_over_the_next() {
        let (queue, pipe) = open();
        queue.push(1, record(b"old"));
        queue.close(1);
        queue.push(1, record(b"late"));
        queue.open(2, Box::new(pipe.clone()), Box::new(|| {}));
        queue.push(1, record(b"later"));
        queue.push(2, record(b"new"));
        queue.close(1);
        assert_eq!(queue.flush(), Flushed::Done);
        assert_eq!(pipe.bytes(), b"new");
    }
}
