use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::histogram::{Histogram, add_as_owner};
use crate::limits::DIRECT_EXPORTS;

/// The outcome of a call other than a status of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    Status(u32),
    Rpc(&'static str),
}

/// The row, the outcome and the export of a count.
pub(super) type Key = (usize, Ending, Option<u32>);

/// One procedure of a version of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) program: &'static str,
    pub(super) version: u32,
    pub(super) procedure: &'static str,
    pub(super) status_name: fn(u32) -> &'static str,
}

/// All counts: the rows, and for each thread the counts of each row.
///
/// A thread takes a `ThreadCounters` when it first counts. When the thread ends, another one
/// reuses its counters, so there are never more of them than there were threads at once.
#[derive(Default)]
pub struct Metrics {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: Vec<Row>,
    threads: Vec<Arc<ThreadCounters>>,
    free: Vec<Arc<ThreadCounters>>,
}

/// The counts of one thread, which only this thread writes.
pub(super) struct ThreadCounters {
    pub(super) cells: Box<[Cells]>,
    /// The exports whose successes are counted in [`Cells::by_export`], by index, each as its
    /// number plus one.
    exports: [AtomicU64; DIRECT_EXPORTS],
    /// Nanoseconds of the calls of these exports.
    service: [AtomicU64; DIRECT_EXPORTS],
    pub(super) others: Mutex<Others>,
}

/// Counts of rare events: failures, and calls of exports beyond [`DIRECT_EXPORTS`].
#[derive(Default)]
pub(super) struct Others {
    pub(super) counts: BTreeMap<Key, u64>,
    /// Nanoseconds of calls by the number of the export.
    pub(super) service: BTreeMap<u32, u64>,
}

/// The counts of one row.
pub(super) struct Cells {
    pub(super) latency: Histogram,
    /// Successes of calls that are about no export.
    pub(super) plain: AtomicU64,
    /// Successes by the index of the export.
    pub(super) by_export: [AtomicU64; DIRECT_EXPORTS],
}

thread_local! {
    static MINE: RefCell<Option<Mine>> = const { RefCell::new(None) };
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Nanoseconds of the calls of this thread that [`take_service_nanoseconds`] has not returned.
    static SERVICE: Cell<u64> = const { Cell::new(0) };
}

/// The counters of this thread.
struct Mine {
    metrics: Arc<Metrics>,
    counters: Arc<ThreadCounters>,
}

/// Notes that this thread spent time that belongs to no call; the next call reads the clock when it
/// begins.
#[inline]
pub fn forget_time() {
    LAST.set(None);
}

/// Returns the time that this thread's calls took since it was last asked, in nanoseconds; 0 if
/// calls are not measured.
#[inline]
pub(crate) fn take_service_nanoseconds() -> u64 {
    SERVICE.take()
}

/// Returns the time at which the present call began: the end of the previous call, unless that was
/// forgotten. A batch of n calls therefore reads the clock n + 1 times.
#[inline]
pub(super) fn begun() -> Instant {
    LAST.get().unwrap_or_else(Instant::now)
}

impl Metrics {
    /// Adds rows for the procedures of one version; returns the number of the first.
    pub(super) fn add_rows(&self, rows: impl Iterator<Item = Row>) -> usize {
        let mut state = self.state();
        let first = state.rows.len();
        state.rows.extend(rows);
        first
    }

    /// Counts a call that ends now.
    pub(super) fn record(
        self: &Arc<Self>,
        row: usize,
        begun: Instant,
        ending: Ending,
        export: Option<u32>,
    ) {
        self.record_late(row, (begun, Duration::ZERO), ending, export);
    }

    /// Counts a call that ends now, and that used no thread for the time `waited`.
    pub(super) fn record_late(
        self: &Arc<Self>,
        row: usize,
        (begun, waited): (Instant, Duration),
        ending: Ending,
        export: Option<u32>,
    ) {
        let now = Instant::now();
        LAST.set(Some(now));
        let latency = now.duration_since(begun);
        let service = latency.saturating_sub(waited).as_nanos() as u64;
        SERVICE.set(SERVICE.get() + service);
        MINE.with_borrow_mut(|mine| {
            let mine = match mine {
                Some(mine) if Arc::ptr_eq(&mine.metrics, self) => mine,
                _ => mine.insert(self.hand_off()),
            };
            let times = (latency.as_nanos() as u64, service);
            mine.counters.count(row, times, ending, export);
        });
    }

    /// Returns the rows, and the counters of all threads, to be added up.
    pub(super) fn snapshot(&self) -> (Vec<Row>, Vec<Arc<ThreadCounters>>) {
        let state = self.state();
        (state.rows.clone(), state.threads.clone())
    }

    fn hand_off(self: &Arc<Self>) -> Mine {
        let mut state = self.state();
        let counters = state.free.pop().unwrap_or_else(|| {
            let counters = Arc::new(ThreadCounters::new(state.rows.len()));
            state.threads.push(Arc::clone(&counters));
            counters
        });
        Mine { metrics: Arc::clone(self), counters }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        self.metrics.state().free.push(Arc::clone(&self.counters));
    }
}

impl ThreadCounters {
    fn new(rows: usize) -> Self {
        let others = Mutex::default();
        let [exports, service] = [const { [const { AtomicU64::new(0) }; DIRECT_EXPORTS] }; 2];
        Self { cells: (0..rows).map(|_| Cells::new()).collect(), exports, service, others }
    }

    /// Counts a call with its latency and its time of service in nanoseconds.
    fn count(&self, row: usize, (latency, spent): (u64, u64), ending: Ending, export: Option<u32>) {
        let Some(cells) = self.cells.get(row) else { return };
        cells.latency.record(latency);
        let place = export.and_then(|export| self.place(export));
        if let Some(service) = place.and_then(|place| self.service.get(place)) {
            add_as_owner(service, spent);
        }
        let direct = match export {
            None => Some(&cells.plain),
            Some(_) => place.and_then(|place| cells.by_export.get(place)),
        };
        match direct {
            Some(count) if ending == Ending::Status(0) => add_as_owner(count, 1),
            _ => {
                let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
                *others.counts.entry((row, ending, export)).or_default() += 1;
                if let (Some(export), None) = (export, place) {
                    *others.service.entry(export).or_default() += spent;
                }
            }
        }
    }

    /// Returns the nanoseconds of the calls of each export.
    pub(super) fn service_by_export(&self) -> Vec<(u32, u64)> {
        let direct = (0..DIRECT_EXPORTS).filter_map(|place| {
            Some((self.export_at(place)?, self.service.get(place)?.load(Ordering::Relaxed)))
        });
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        direct.chain(others.service.iter().map(|(export, spent)| (*export, *spent))).collect()
    }
}

impl ThreadCounters {
    /// Returns the index at which an export's successes are counted. The search starts at the
    /// export's number, which is usually a hash, so most are found at once.
    fn place(&self, export: u32) -> Option<usize> {
        let wanted = u64::from(export) + 1;
        let places = (0..DIRECT_EXPORTS).map(|step| (export as usize + step) % DIRECT_EXPORTS);
        for place in places {
            match self.exports[place].load(Ordering::Relaxed) {
                0 => {
                    self.exports[place].store(wanted, Ordering::Release);
                    return Some(place);
                }
                found if found == wanted => return Some(place),
                _ => {}
            }
        }
        None
    }

    /// Returns the export whose successes are counted at an index.
    pub(super) fn export_at(&self, place: usize) -> Option<u32> {
        let number = self.exports.get(place)?.load(Ordering::Acquire).checked_sub(1)?;
        u32::try_from(number).ok()
    }
}

impl Cells {
    const fn new() -> Self {
        Self {
            latency: Histogram::new(),
            plain: AtomicU64::new(0),
            by_export: [const { AtomicU64::new(0) }; DIRECT_EXPORTS],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Arc<Metrics> {
        let metrics = Arc::<Metrics>::default();
        let row = |procedure| Row { program: "nfs", version: 3, procedure, status_name: |_| "" };
        metrics.add_rows(["NULL", "READ"].into_iter().map(row));
        metrics
    }

    /// Counts successful READ calls on these exports, in a separate thread. It has given its
    /// counters back when this returns; the end of a scope alone does not wait for that.
    fn count(metrics: &Arc<Metrics>, exports: impl IntoIterator<Item = u32> + Send) {
        let record = |export| metrics.record(1, begun(), Ending::Status(0), Some(export));
        let work = || exports.into_iter().for_each(record);
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    }

    #[test]
    fn every_export_is_counted_however_many_there_are() {
        let metrics = metrics();
        let many = 3 * DIRECT_EXPORTS as u32;
        count(&metrics, (0..many).chain(0..many).chain([u32::MAX, many - 1]));
        let counted = metrics.read().calls_by_export;
        assert_eq!(counted.len(), many as usize + 1);
        assert_eq!((counted[&0], counted[&(many - 1)], counted[&u32::MAX]), (2, 3, 1));
    }

    #[test]
    fn exports_whose_numbers_begin_at_one_place_are_distinguished() {
        let metrics = metrics();
        let step = DIRECT_EXPORTS as u32;
        count(&metrics, [7, 7 + step, 7 + 2 * step, 7, 7 + step, 7]);
        let counted: Vec<_> = metrics.read().calls_by_export.into_iter().collect();
        assert_eq!(counted, [(7, 3), (7 + step, 2), (7 + 2 * step, 1)]);
    }

    #[test]
    fn a_thread_goes_on_with_the_counts_of_one_that_ended() {
        let metrics = metrics();
        for _ in 0..5 {
            count(&metrics, [1]);
        }
        assert_eq!(metrics.snapshot().1.len(), 1);
        assert_eq!(metrics.read().calls_by_export[&1], 5);
    }

    #[test]
    fn a_call_begins_when_the_one_before_ended_unless_that_was_forgotten() {
        let metrics = metrics();
        metrics.record(1, begun(), Ending::Status(0), None);
        let end = LAST.get().unwrap();
        assert_eq!(begun(), end);
        forget_time();
        assert!(begun() > end);
    }

    #[test]
    fn a_missing_row_is_not_counted() {
        let metrics = metrics();
        metrics.record(2, begun(), Ending::Status(0), None);
        assert!(metrics.read().procedures.is_empty());
    }
}
