use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

/// Longest time for fetching a metrics page, in seconds.
const PAGE_SECONDS_MAX: u64 = 5;

/// RPCs that the kernel's NFS client has sent for a mount, by operation.
pub(super) fn of_mount(point: &str) -> Result<BTreeMap<String, u64>> {
    let place = "/proc/self/mountstats";
    let text = fs::read_to_string(place).context(place)?;
    parse_mountstats(&text, point).with_context(|| format!("{place} says nothing of {point}"))
}

/// Lines `OPERATION: count ...` after `per-op statistics` of the device that is mounted there.
fn parse_mountstats(text: &str, point: &str) -> Option<BTreeMap<String, u64>> {
    let mark = format!(" mounted on {point} with fstype nfs");
    // If two mounts are on one directory, the later one in the file hides the other.
    let (_, section) = text.rsplit_once(&mark)?;
    let section = section.split("\ndevice ").next()?;
    let (_, operations) = section.split_once("per-op statistics")?;
    let counts = operations.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(": ")?;
        let count: u64 = rest.split(' ').next()?.parse().ok()?;
        (count > 0).then(|| (name.to_owned(), count))
    });
    Some(counts.collect())
}

/// Returns the calls that a comity has answered, by procedure, and the operations in COMPOUNDs, by
/// operation, from its metrics page.
///
/// # Errors
/// Nobody answers there in time.
pub fn of_comity(metrics: SocketAddr) -> Result<BTreeMap<String, u64>> {
    Ok(parse_metrics(&metrics_page(metrics)?))
}

/// Reads the metrics page of a server of this project.
///
/// # Errors
/// Nobody answers there in time.
pub fn metrics_page(metrics: SocketAddr) -> Result<String> {
    let failed = || format!("read the metrics page at {metrics}");
    let mut stream = TcpStream::connect(metrics).with_context(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(PAGE_SECONDS_MAX)))?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {metrics}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).with_context(failed)?;
    let mut page = String::new();
    stream.read_to_string(&mut page).with_context(failed)?;
    Ok(page)
}

/// Lines `comity_rpc_calls_total{...procedure="READ"...} count`, added up by procedure, and
/// `comity_nfs4_operations_total{operation="READ"...} count`, added up by operation: what is in
/// COMPOUNDs.
fn parse_metrics(page: &str) -> BTreeMap<String, u64> {
    let families =
        [("comity_rpc_calls_total{", "procedure"), ("comity_nfs4_operations_total{", "operation")];
    let mut counts = BTreeMap::new();
    for line in page.lines() {
        for (family, label) in families {
            let sample = line.strip_prefix(family).and_then(|rest| parse_sample(rest, label));
            if let Some((kind, count)) = sample.filter(|(_, count)| *count > 0) {
                *counts.entry(kind.to_uppercase()).or_default() += count;
            }
        }
    }
    counts
}

/// The value of a label, and the count.
fn parse_sample<'a>(sample: &'a str, label: &str) -> Option<(&'a str, u64)> {
    let (labels, count) = sample.rsplit_once("} ")?;
    let (_, rest) = labels.split_once(&format!("{label}=\""))?;
    Some((rest.split('"').next()?, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTSTATS: &str = "\
device proc mounted on /proc with fstype proc
device host:/a mounted on /mnt/nfs with fstype nfs statvers=1.1
\topts:\trw,vers=3
\tper-op statistics
\t        NULL: 1 1 0 44 24 5 0 5 0
\t     GETATTR: 12 12 0 1 1 0 0 0 0
\t        READ: 0 0 0 0 0 0 0 0 0

device host:/b mounted on /mnt/other with fstype nfs4 statvers=1.1
\tper-op statistics
\t        READ: 7 7 0 0 0 0 0 0 0
";

    #[test]
    fn a_mounts_calls_are_read_and_no_others() {
        let counts = parse_mountstats(MOUNTSTATS, "/mnt/nfs").unwrap();
        assert_eq!(counts, [("GETATTR".to_owned(), 12), ("NULL".to_owned(), 1)].into());
        assert_eq!(parse_mountstats(MOUNTSTATS, "/mnt/other").unwrap()["READ"], 7);
        assert_eq!(parse_mountstats(MOUNTSTATS, "/mnt"), None);
    }

    #[test]
    fn procedures_are_added_up_over_versions_and_statuses() {
        let page = "# TYPE comity_rpc_calls_total counter\n\
            comity_rpc_calls_total{program=\"nfs\",procedure=\"READ\",status=\"OK\"} 3\n\
            comity_rpc_calls_total{program=\"nfs\",procedure=\"READ\",status=\"STALE\"} 1\n\
            comity_receives_total 9\n\
            comity_nfs4_operations_total{operation=\"open\",outcome=\"ok\"} 2\n\
            comity_nfs4_operations_total{operation=\"open\",outcome=\"failed\"} 0\n";
        let counts = [("READ".to_owned(), 4), ("OPEN".to_owned(), 2)].into();
        assert_eq!(parse_metrics(page), counts);
    }
}
