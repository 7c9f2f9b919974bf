//! Counts the system calls of a steady load with strace. The counts are free of noise, and show
//! whether replies are batched, handles stay open and ids are switched rarely.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_bench::targets;
use rustix::process::{Pid, Signal, kill_process};

use crate::server_process::{self, SERVER_PROCESSOR, ServerOptions, ServerProcess, TestBed};
use comity_bench::Operation;
use comity_bench::load::{Client, Load, Stop};
use comity_bench::prober::Pages;

/// Options of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The server that is measured.
    #[command(flatten)]
    pub subject: ServerOptions,
    /// Exit with 1 if there are more calls than there should be.
    #[arg(long)]
    pub check: bool,
}

/// Calls that are counted, and calls before them that are not.
const CALLS: u64 = 20_000;
const CALLS_BEFORE: u64 = 5_000;
const CONNECTIONS: usize = 4;
const DEPTH: usize = 8;

/// The counted operations, and the highest number of system calls on files for each.
const LOOKED_AT: [(Operation, f64); 3] =
    [(Operation::Getattr, 1.05), (Operation::Lookup, 3.05), (Operation::Read(4096), 2.05)];

const RECEIVE: &[&str] = &["recvfrom", "recvmsg", "read"];
const SEND: &[&str] = &["sendto", "sendmsg", "write", "writev", "sendfile"];
const WAIT: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];
const LOCK: &[&str] = &["futex"];
const IDENTITY: &[&str] =
    &["setfsuid", "setfsgid", "setgroups", "setresuid", "setresgid", "capset"];

/// System calls by name.
type Counts = BTreeMap<String, u64>;

/// Measures and prints; returns whether there are no more system calls than allowed.
///
/// # Errors
/// The server or strace does not start.
pub fn run(options: &Options) -> Result<bool> {
    targets::enter_namespace()?;
    let test_bed = TestBed::make(&options.subject)?;
    let comity = test_bed.start_comity(&[SERVER_PROCESSOR], false)?;
    comity_bench::process::pin(None, &[server_process::LOAD_PROCESSOR])?;
    let mut all = true;
    for (operation, most) in LOOKED_AT {
        let counts =
            counted(&comity, operation, &test_bed.work).with_context(|| operation.to_string())?;
        all &= report(operation, &counts, most);
    }
    Ok(all)
}

/// Counts system calls during a load that is already running.
fn counted(comity: &ServerProcess, operation: Operation, work: &Path) -> Result<Counts> {
    let pages = Pages { created: String::new(), listed: Vec::new() };
    let script = comity.script(operation, &pages)?;
    let mut client = Client::connect(comity.address, CONNECTIONS)?;
    client.run(&script, Load { depth: DEPTH, stop: Stop::Calls(CALLS_BEFORE) })?;
    let summary = work.join("strace");
    let mut strace = start_strace(comity.process(), &summary)?;
    let outcome = client.run(&script, Load { depth: DEPTH, stop: Stop::Calls(CALLS) });
    kill_process(Pid::from_child(&strace), Signal::INT)?;
    strace.wait()?;
    outcome?;
    parse(&fs::read_to_string(&summary)?)
}

/// Starts strace and waits until it is attached to the process.
fn start_strace(process: u32, summary: &Path) -> Result<Child> {
    let child = Command::new("strace")
        .args(["-c", "-f", "-q", "-U", "name,calls", "-o"])
        .arg(summary)
        .args(["-p", &process.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("strace cannot be run (apt-get install strace)")?;
    let deadline = Instant::now() + Duration::from_secs(5);
    let status = format!("/proc/{process}/status");
    while fs::read_to_string(&status)?.contains("TracerPid:\t0\n") {
        ensure!(Instant::now() < deadline, "strace does not attach");
        sleep(Duration::from_millis(10));
    }
    // strace attaches to the other threads after the first.
    sleep(Duration::from_millis(100));
    Ok(child)
}

fn parse(summary: &str) -> Result<Counts> {
    let rows = summary.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, calls) = (words.next()?, words.next()?.parse().ok()?);
        (name != "total").then(|| (name.to_owned(), calls))
    });
    let counts: Counts = rows.collect();
    ensure!(!counts.is_empty(), "strace counted nothing: {summary}");
    Ok(counts)
}

/// Prints the counts; returns whether they are within their bounds.
fn report(operation: Operation, counts: &Counts, most_file_calls: f64) -> bool {
    let sum = |names: &[&str]| -> u64 {
        counts.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, n)| n).sum()
    };
    let each = |calls: u64| calls as f64 / CALLS as f64;
    let (receive, send, wait) = (sum(RECEIVE), sum(SEND), sum(WAIT));
    let (lock, identity) = (sum(LOCK), sum(IDENTITY));
    let total: u64 = counts.values().sum();
    let files = each(total - receive - send - wait - lock - identity);
    println!(
        "{operation}: a call takes {files:.3} calls on files, {:.3} receives, {:.3} sends, {:.3} \
         waits, {:.3} futexes, {:.3} credential calls",
        each(receive),
        each(send),
        each(wait),
        each(lock),
        each(identity)
    );
    println!("  {counts:?}");
    // A round may have no replies, so sends and receives differ by a few.
    let batched = receive <= wait * 2 + CALLS / 4 && send <= receive + CALLS / 100;
    let good = files <= most_file_calls && each(lock) < 0.01 && each(identity) < 0.01 && batched;
    if !good {
        println!("  MORE THAN THERE SHOULD BE");
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_strace_is_read() {
        let summary = "syscall                calls\n---------------- ---------\n\
            recvfrom              2500\nfstat                20000\n\
            ---------------- ---------\ntotal                22500\n";
        let counts = parse(summary).unwrap();
        assert_eq!(counts.get("fstat"), Some(&20_000));
        assert_eq!(counts.len(), 2);
    }
}
