//! Processes that are measured: their cost, their processors, and their end.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Seconds that a process has to end after SIGTERM before it is killed.
const END_SECONDS: u64 = 5;

/// A process that is measured; dropping this value ends it.
#[derive(Debug)]
pub struct StartedServer {
    child: Child,
}

impl StartedServer {
    /// Starts a command on some processors only.
    ///
    /// # Errors
    /// The program does not exist.
    pub fn start(command: &mut Command, processors: &[usize]) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let before = rustix::thread::sched_getaffinity(None)?;
        pin(None, processors)?;
        let child = command.stdin(Stdio::null()).spawn();
        sched_setaffinity(None, &before)?;
        Ok(Self { child: child.with_context(|| format!("start {program}"))? })
    }

    /// The id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if the process has ended.
    ///
    /// # Errors
    /// The process has ended; the error contains its exit status.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("the server ended: {status}"),
            None => Ok(()),
        }
    }

    /// Waits until `ready` returns true.
    ///
    /// # Errors
    /// The process has ended, or is not ready after `seconds`.
    pub fn until(&mut self, seconds: u64, mut ready: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("not ready after {seconds} s");
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(END_SECONDS);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            sleep(Duration::from_millis(10));
        }
    }
}

/// Keeps a process, or this thread, on some processors.
///
/// # Errors
/// There are no such processors.
pub fn pin(process: Option<u32>, processors: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    let pid = process.and_then(|id| Pid::from_raw(id as i32));
    sched_setaffinity(pid, &set).with_context(|| format!("run on processors {processors:?}"))
}

/// Processor time of the threads of a process so far, in nanoseconds. It is exact while all threads
/// sleep.
#[derive(Debug)]
pub struct CpuTime(HashMap<OsString, u64>);

impl CpuTime {
    /// Returns the processor time of the threads that a process has now.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32) -> Result<Self> {
        let mut times = HashMap::new();
        for thread in tasks(process)? {
            // A thread may end between the listing and the reading.
            let Ok(text) = fs::read_to_string(thread.join("schedstat")) else { continue };
            let ran = text.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or(0);
            times.insert(thread.file_name().unwrap_or_default().to_owned(), ran);
        }
        Ok(Self(times))
    }

    /// Returns the time used since `before`. A thread that has ended is left out: servers end idle
    /// threads.
    #[must_use]
    pub fn since(&self, before: &Self) -> u64 {
        let earlier = |thread| before.0.get(thread).copied().unwrap_or(0);
        self.0.iter().map(|(thread, ran)| ran.saturating_sub(earlier(thread))).sum()
    }
}

/// Threads of a process.
///
/// # Errors
/// There is no such process.
pub fn threads(process: u32) -> Result<usize> {
    Ok(tasks(process)?.len())
}

/// Resident memory of a process in KiB.
///
/// # Errors
/// There is no such process.
pub fn resident_kib(process: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).context("no VmRSS")
}

/// Descriptors that a process has open.
///
/// # Errors
/// There is no such process.
pub fn descriptors(process: u32) -> Result<usize> {
    let folder = format!("/proc/{process}/fd");
    Ok(fs::read_dir(&folder).with_context(|| folder.clone())?.count())
}

fn tasks(process: u32) -> Result<Vec<std::path::PathBuf>> {
    let folder = format!("/proc/{process}/task");
    let tasks = fs::read_dir(&folder).with_context(|| folder.clone())?;
    Ok(tasks.filter_map(Result::ok).map(|task| task.path()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(threads: &[(&str, u64)]) -> CpuTime {
        CpuTime(threads.iter().map(|(thread, ran)| ((*thread).into(), *ran)).collect())
    }

    #[test]
    fn new_threads_count_and_ended_ones_do_not() {
        let before = times(&[("1", 100), ("2", 5_000)]);
        let after = times(&[("1", 130), ("3", 7)]);
        assert_eq!(after.since(&before), 37);
    }
}
