//! The move of a file to other data servers, in a thread of its own, as a large file takes longer
//! than a request may.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use comity_export::Export;
use comity_nfs4::Memory;
use comity_vfs::{FileKey, Handle, MovedFile, Placement, Status};
use serde_json::{Value, json};

/// Time for which a request waits for the end of a move. Other requests wait meanwhile.
const MOMENT: Duration = Duration::from_millis(200);

type MoveOutcome = comity_vfs::Result<MovedFile>;

/// The move that is under way; there is one at a time.
#[derive(Default)]
pub(crate) struct PlacementMoves(Mutex<Option<MoveThread>>);

struct MoveThread {
    file: FileKey,
    copied: Arc<AtomicU64>,
    outcome: Receiver<MoveOutcome>,
}

impl PlacementMoves {
    /// Begins to move a file, or asks for the state of its move. The move goes on if nobody asks
    /// any more.
    ///
    /// # Errors
    /// The move failed, or no thread can be started.
    pub(crate) fn advance(
        &self,
        (export, _): (&Arc<Export>, &dyn Placement),
        memory: &Memory,
        file: &Handle,
    ) -> Result<Value> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = export.key(file);
        let of_other = current.take_if(|it| it.file != key);
        if let Some(other) = of_other.filter(MoveThread::is_under_way) {
            *current = Some(other);
            return Ok(json!({ "state": "waiting", "text": "another file is being moved" }));
        }
        let it = match current.take() {
            Some(it) => it,
            None => MoveThread::begin(export, memory, key)?,
        };
        match it.outcome.recv_timeout(MOMENT) {
            Ok(outcome) => shown(outcome),
            Err(RecvTimeoutError::Timeout) => {
                let copied = it.copied.load(Ordering::Relaxed);
                *current = Some(it);
                Ok(json!({ "state": "moving", "copied_bytes": copied }))
            }
            Err(RecvTimeoutError::Disconnected) => Err(anyhow!("the move failed; see the log")),
        }
    }
}

impl MoveThread {
    fn begin(export: &Arc<Export>, memory: &Memory, file: FileKey) -> Result<Self> {
        let (told, outcome) = channel();
        let copied = Arc::new(AtomicU64::new(0));
        let parts = (Arc::clone(export), memory.clone(), Arc::clone(&copied));
        let work = move || carry_out(parts, file, &told);
        let thread = thread::Builder::new().name("placement-move".into()).spawn(work);
        thread.context("the system starts no thread for the move of a file; try again")?;
        Ok(Self { file, copied, outcome })
    }

    /// Returns whether the move goes on. The outcome of one that has ended is lost.
    fn is_under_way(&self) -> bool {
        matches!(self.outcome.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }
}

fn carry_out(
    (export, memory, copied): (Arc<Export>, Memory, Arc<AtomicU64>),
    file: FileKey,
    told: &Sender<MoveOutcome>,
) {
    let Some(placement) = export.placement() else { return };
    let clear = || {
        let now = memory.clock.now();
        let recalled = memory.engine.recall_layouts_if(now, None, &file, &|| true);
        recalled.map_err(|_| Status::Delay)?;
        // Only bytes before the end of the file are moved.
        if memory.engine.is_size_doubtful(&file) { Err(Status::Delay) } else { Ok(()) }
    };
    let note = |bytes| copied.store(bytes, Ordering::Relaxed);
    // Nobody may wait for the outcome any more.
    let _ = told.send(placement.move_file(&file.handle, &clear, &note));
}

fn shown(outcome: MoveOutcome) -> Result<Value> {
    match outcome {
        Ok(MovedFile::Moved { bytes, has_gaps }) => {
            Ok(json!({ "state": "moved", "bytes": bytes, "has_gaps": has_gaps }))
        }
        Ok(MovedFile::Stayed) | Err(Status::Stale | Status::NoEnt) => {
            Ok(json!({ "state": "gone" }))
        }
        Err(Status::Delay) => Ok(json!({
            "state": "waiting",
            "text": "clients use the file, or a data server does not answer",
        })),
        Err(status) => Err(anyhow!("the file was not moved: {status}")),
    }
}
