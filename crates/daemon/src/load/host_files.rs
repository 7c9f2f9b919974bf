use std::fs;
use std::path::{Path, PathBuf};

use comity_load::{DiskRates, HostSample, HostTexts};
use comity_vfs::AsServer;
use rustix::thread::{CpuSet, sched_getaffinity};
use tracing::warn;

use crate::device_rates::{DeviceRates, is_sampled_disk};
use crate::limits::DEVICES_REREAD;

/// The kernel's files about the load of the machine.
#[derive(Debug, Default)]
pub(super) struct HostFiles {
    /// The folder in which rates of devices are recorded.
    state_folder: PathBuf,
    disks: Vec<(String, Option<DiskRates>)>,
    /// Network interfaces with a known speed, in bytes per second.
    lines: Vec<(String, u64)>,
    samples: u32,
    /// The error for which no recorded rates are used.
    failed: Option<String>,
}

impl HostFiles {
    /// Uses the rates of devices that are recorded in a folder.
    pub(super) fn new(state_folder: PathBuf) -> Self {
        Self { state_folder, ..Self::default() }
    }

    /// Takes a sample. Files that cannot be read are skipped.
    pub(super) fn sample(&mut self, server: &AsServer) -> HostSample {
        if self.samples.is_multiple_of(DEVICES_REREAD) {
            let rates = self.recorded_rates(server);
            self.disks = disks(server, Path::new("/sys/block"), &rates);
            self.lines = lines(server, Path::new("/sys/class/net"), &rates);
        }
        self.samples = self.samples.wrapping_add(1);
        let disks: Vec<_> =
            self.disks.iter().map(|(name, rates)| (name.as_str(), *rates)).collect();
        let lines: Vec<_> =
            self.lines.iter().map(|(name, speed)| (name.as_str(), *speed)).collect();
        let read =
            |name: &str| fs::read_to_string(Path::new("/proc").join(name)).unwrap_or_default();
        HostSample::read(&HostTexts {
            stat: &read("stat"),
            own_stat: &read("self/stat"),
            processors: &allowed_processors(),
            threads: &threads(server),
            meminfo: &read("meminfo"),
            pressure_processor: &read("pressure/cpu"),
            pressure_memory: &read("pressure/memory"),
            pressure_storage: &read("pressure/io"),
            diskstats: &read("diskstats"),
            disks: &disks,
            network: &read("net/dev"),
            lines: &lines,
        })
    }

    /// Reads the recorded rates. Rates that cannot be read are not used, which is logged once.
    fn recorded_rates(&mut self, server: &AsServer) -> DeviceRates {
        let error = match DeviceRates::read(server, &self.state_folder) {
            Ok(rates) => {
                self.failed = None;
                return rates;
            }
            Err(error) => format!("{error:#}"),
        };
        if self.failed.as_ref() != Some(&error) {
            warn!("rates of devices are not used: {error}");
            self.failed = Some(error);
        }
        DeviceRates::default()
    }
}

/// Returns the numbers of the processors to which the server is bound. A set that the kernel does
/// not tell is empty.
fn allowed_processors() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).map(|number| number as u32).collect()
}

/// Returns the numbers of all threads of the server with their times, a line for each.
fn threads(server: &AsServer) -> String {
    let folder = Path::new("/proc/self/task");
    let read = |thread: String| {
        let times = fs::read_to_string(folder.join(&thread).join("schedstat")).ok()?;
        Some(format!("{thread} {times}"))
    };
    names(server, folder).filter_map(read).collect()
}

/// Returns the names of whole disks that are sampled, with their rates.
fn disks(
    server: &AsServer,
    folder: &Path,
    rates: &DeviceRates,
) -> Vec<(String, Option<DiskRates>)> {
    let rated = |name: String| {
        let known = rates.disk(&name);
        (name, known)
    };
    names(server, folder).filter(|name| is_sampled_disk(name)).map(rated).collect()
}

/// Returns the network interfaces with a speed. A recorded one comes first. The kernel reports it
/// in millions of bits per second, and -1 or an error if there is none, as for loopback.
fn lines(server: &AsServer, folder: &Path, rates: &DeviceRates) -> Vec<(String, u64)> {
    let reported = |name: &String| {
        let text = fs::read_to_string(folder.join(name).join("speed")).ok()?;
        let megabits: u64 = text.trim().parse().ok()?;
        megabits.checked_mul(1_000_000 / 8)
    };
    let speed = |name: &String| {
        let speed = rates.lines.get(name).copied().or_else(|| reported(name));
        speed.filter(|speed| *speed > 0)
    };
    names(server, folder).filter_map(|name| speed(&name).map(|speed| (name, speed))).collect()
}

fn names(_: &AsServer, folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_setaffinity;

    use super::*;
    use crate::device_rates::RecordedDisk;

    #[test]
    fn a_thread_that_is_bound_to_a_processor_knows_no_other() {
        let first = allowed_processors()[0];
        let mut set = CpuSet::new();
        set.set(first as usize);
        sched_setaffinity(None, &set).unwrap();
        assert_eq!(allowed_processors(), [first]);
    }

    #[test]
    fn each_thread_has_a_line_of_times() {
        let (told, waits) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || waits.recv().is_err());
        let server = AsServer::here().unwrap();
        let text = threads(&server);
        assert!(text.lines().count() >= 2, "{text}");
        assert!(text.lines().all(|line| line.split(' ').count() == 4), "{text}");
        drop(told);
        thread.join().unwrap();
    }

    #[test]
    fn loop_devices_are_not_disks_and_interfaces_need_a_speed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |path: &str| fs::create_dir_all(folder.path().join(path)).unwrap();
        ["block/sda", "block/loop0", "block/ram1", "net/eth0", "net/lo", "net/tun0"]
            .into_iter()
            .for_each(make);
        let speed = |name: &str, text: &str| {
            fs::write(folder.path().join("net").join(name).join("speed"), text).unwrap();
        };
        speed("eth0", "1000\n");
        speed("tun0", "-1\n");
        let server = AsServer::here().unwrap();
        let none = DeviceRates::default();
        let [block, net] = ["block", "net"].map(|name| folder.path().join(name));
        assert_eq!(disks(&server, &block, &none), [("sda".to_owned(), None)]);
        assert_eq!(lines(&server, &net, &none), [("eth0".to_owned(), 125_000_000)]);
        assert!(disks(&server, &folder.path().join("none"), &none).is_empty());

        let disk = RecordedDisk { read_bytes: 1, written_bytes: 2, operations: 3 };
        let known = DeviceRates {
            disks: [("sda".to_owned(), disk)].into(),
            lines: [("tun0".to_owned(), 7), ("wlan0".to_owned(), 9)].into(),
        };
        assert_eq!(disks(&server, &block, &known)[0].1, known.disk("sda"));
        let mut lines = lines(&server, &net, &known);
        lines.sort();
        assert_eq!(lines, [("eth0".to_owned(), 125_000_000), ("tun0".to_owned(), 7)]);
    }

    #[test]
    fn rates_that_are_recorded_later_are_used_and_wrong_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let server = AsServer::here().unwrap();
        let mut files = HostFiles::new(folder.path().to_owned());
        let rates =
            DeviceRates { lines: [("eth0".to_owned(), 7)].into(), ..DeviceRates::default() };
        let record =
            || DeviceRates::change(&server, folder.path(), |all| *all = rates.clone()).unwrap();
        record();
        assert_eq!(files.recorded_rates(&server), rates);
        fs::write(folder.path().join("device-rates.json"), "7").unwrap();
        assert_eq!(files.recorded_rates(&server), DeviceRates::default());
        assert!(files.failed.is_some());
        fs::remove_file(folder.path().join("device-rates.json")).unwrap();
        record();
        assert_eq!((files.recorded_rates(&server), files.failed), (rates, None));
    }
}
