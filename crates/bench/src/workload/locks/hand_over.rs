use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::{WHOLE, lock, seconds_since};
use crate::suite::{Access, Context, Driver, LockKind, Unit, Wait};

/// Stack of a waiter's thread: it only waits.
const STACK_BYTES: usize = 256 * 1024;

/// One exclusive lock is released and handed from waiter to waiter.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let path = context.path("hand-over");
    let mut holder = context.driver()?;
    let file = holder.create(&path)?;
    for waiters in context.parameters().counts("waiters")? {
        lock(&mut holder, &file, WHOLE)?;
        let mut drivers =
            (0..waiters).map(|_| context.driver()).collect::<Result<Vec<Driver>>>()?;
        let settle = Duration::from_millis(context.parameters().count("settle-milliseconds")?);
        let waiting = Waiting { path: &path, ready: AtomicUsize::new(0), grants: Mutex::default() };
        let released = thread::scope(|scope| {
            let mut threads = Vec::new();
            for driver in &mut drivers {
                let builder = thread::Builder::new().stack_size(STACK_BYTES);
                let spawned = builder.spawn_scoped(scope, || waiting.wait(driver));
                threads.push(spawned.context("start a waiter: raise the limit (ulimit -u)"));
            }
            let ready = waiting.until_ready(&threads, settle);
            // The lock is released in any case, so that nobody waits for ever.
            let released = Instant::now();
            let unlocked = holder.lock(&file, LockKind::Unlock, WHOLE, Wait::No);
            let ended: Result<Vec<()>> =
                threads.into_iter().map(|thread| crate::suite::joined(thread?)).collect();
            ready.and(unlocked).and(ended).map(|_| released)
        })?;
        let grants = waiting.grants.into_inner().unwrap_or_default();
        ensure!(grants.len() as u64 == waiters, "{} of {waiters} waiters got it", grants.len());
        let at = [("waiters", waiters.into())];
        let first = grants.iter().min().map_or(0.0, |first| seconds_since(released, *first));
        let last = grants.iter().max().map_or(0.0, |last| seconds_since(released, *last));
        context.sample("first grant", &at, first, Unit::Seconds);
        context.sample("last grant", &at, last, Unit::Seconds);
    }
    holder.close(file)
}

struct Waiting<'a> {
    path: &'a str,
    ready: AtomicUsize,
    /// The times at which each waiter was granted the lock.
    grants: Mutex<Vec<Instant>>,
}

impl Waiting<'_> {
    fn wait(&self, driver: &mut Driver) -> Result<()> {
        let opened = driver.open(self.path, Access::Write);
        self.ready.fetch_add(1, Ordering::Release);
        let file = opened?;
        driver.lock(&file, LockKind::Exclusive, WHOLE, Wait::Yes)?;
        let granted = Instant::now();
        driver.lock(&file, LockKind::Unlock, WHOLE, Wait::No)?;
        let mut grants = self.grants.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        grants.push(granted);
        drop(grants);
        driver.close(file)
    }

    /// All waiters that could be started have opened the file, and had time to begin to wait.
    fn until_ready<T>(&self, threads: &[Result<T>], settle: Duration) -> Result<()> {
        let started = threads.iter().filter(|thread| thread.is_ok()).count();
        while self.ready.load(Ordering::Acquire) < started {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(settle);
        Ok(())
    }
}
