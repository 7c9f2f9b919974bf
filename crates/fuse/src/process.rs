//! The state of a process that made a request, from proc(5).

use std::fs::File;
use std::io::Read;

use comity_vfs::{Disk, Gid};

use crate::limits::STATUS_BYTES_MAX;

/// The supplementary groups of a thread; none if the thread has ended or is not visible to this
/// process.
pub(crate) fn groups(pid: u32) -> Vec<Gid<Disk>> {
    status(pid).map_or_else(Vec::new, |status| groups_in(&status))
}

/// Returns whether a thread has a pending signal or has ended, so that its request must be given
/// up.
pub(crate) fn is_interrupted(pid: u32) -> bool {
    // A pid of 0 means a request of the kernel itself.
    pid != 0 && status(pid).is_none_or(|status| has_pending_signal(&status))
}

fn status(pid: u32) -> Option<String> {
    let file = File::open(format!("/proc/{pid}/status")).ok()?;
    let mut text = Vec::new();
    file.take(STATUS_BYTES_MAX).read_to_end(&mut text).ok()?;
    // The status contains the program's name, which need not be UTF-8.
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(field, _)| *field == name).map_or("", |(_, value)| value.trim())
}

fn groups_in(status: &str) -> Vec<Gid<Disk>> {
    let numbers = field(status, "Groups").split_ascii_whitespace();
    numbers.filter_map(|number| number.parse().ok()).map(Gid::new).collect()
}

fn has_pending_signal(status: &str) -> bool {
    let mask = |name| u64::from_str_radix(field(status, name), 16).unwrap_or(0);
    (mask("SigPnd") | mask("ShdPnd")) & !mask("SigBlk") != 0
        || field(status, "State") == "Z (zombie)"
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\ta: b\nState:\tS (sleeping)\nUid:\t1\t1\t1\t1\n\
                          Groups:\t4 20 1000 \nSigPnd:\t0000000000000000\n\
                          ShdPnd:\t0000000000000002\nSigBlk:\t0000000000000000\n";

    #[test]
    fn groups_are_read_from_the_status() {
        let numbers: Vec<u32> = groups_in(STATUS).into_iter().map(Gid::number).collect();
        assert_eq!(numbers, [4, 20, 1000]);
        assert_eq!(groups_in("Groups:\t\n"), []);
        assert_eq!(groups_in(""), []);
    }

    #[test]
    fn a_signal_that_is_not_blocked_interrupts() {
        assert!(has_pending_signal(STATUS));
        let blocked = STATUS.replace("SigBlk:\t0000000000000000", "SigBlk:\t0000000000000002");
        assert!(!has_pending_signal(&blocked));
        assert!(!has_pending_signal(&STATUS.replace("ShdPnd:\t0000000000000002", "ShdPnd:\t0")));
    }

    #[test]
    fn a_process_that_is_gone_is_interrupted_and_this_one_is_not() {
        assert!(is_interrupted(u32::MAX));
        assert!(!is_interrupted(std::process::id()));
        assert!(!is_interrupted(0));
    }
}
