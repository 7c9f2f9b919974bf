//! Disks and network interfaces.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::DEVICES_MAX;
use crate::ratio::Ratio;
use crate::resource::Resource;

/// The most that a disk carries in a second, as measured once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRates {
    /// Bytes that are read in sequence.
    pub read_bytes: u64,
    /// Bytes that are written in sequence.
    pub written_bytes: u64,
    /// Operations at random places.
    pub operations: u64,
}

/// Disks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Disks(BTreeMap<String, DiskCounters>);

/// The counters of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DiskCounters {
    operations: u64,
    read_bytes: u64,
    written_bytes: u64,
    busy_milliseconds: u64,
    rates: Option<DiskRates>,
}

/// Bytes of an operation of a sequence: what the kernel reads ahead, as a rule.
const SEQUENTIAL_BYTES: f64 = 131_072.0;

/// Bytes of an operation at a random place, as it was measured.
const PAGE_BYTES: f64 = 4096.0;

/// Bytes of a sector in `/proc/diskstats`, whatever the disk has.
const SECTOR_BYTES: u64 = 512;

/// Network interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interfaces(BTreeMap<String, Interface>);

/// Bytes received and sent by a network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interface {
    received: u64,
    sent: u64,
    /// Capacity in bytes a second in each direction.
    capacity: u64,
}

impl Disks {
    /// Reads `/proc/diskstats`: numbers of the device, its name, and counters.
    pub(super) fn read(text: &str, wanted: &[(&str, Option<DiskRates>)]) -> Self {
        let read = |line: &str| {
            let mut fields = line.split_ascii_whitespace().skip(2);
            let name = fields.next()?;
            let (_, rates) = *wanted.iter().find(|(wanted, _)| *wanted == name)?;
            Some((name.to_owned(), DiskCounters::read(fields, rates)?))
        };
        Self(text.lines().filter_map(read).take(DEVICES_MAX).collect())
    }

    pub(super) fn since(
        &self,
        before: &Self,
        elapsed: Duration,
    ) -> impl Iterator<Item = (Resource, Ratio)> {
        let seconds = elapsed.as_secs_f64();
        let ratios = self.0.iter().filter_map(move |(name, now)| {
            let done = now.since(before.0.get(name)?);
            let busy = Ratio::of(done.busy_milliseconds as f64, 1000.0 * seconds);
            let rate = done.part_of_rates(seconds);
            let rate = rate.map(|rate| (Resource::DiskRate(name.clone()), rate));
            Some([Some((Resource::Disk(name.clone()), busy)), rate])
        });
        ratios.flatten().flatten()
    }
}

impl DiskCounters {
    /// Reads the counters of a disk. The first is of reads, the third of sectors that were read;
    /// the fifth and the seventh are those of writes; the tenth is the time in milliseconds in
    /// which I/O was under way (iostats of the kernel's documents).
    fn read<'a>(fields: impl Iterator<Item = &'a str>, rates: Option<DiskRates>) -> Option<Self> {
        let counters: Vec<u64> =
            fields.take(10).map(|field| field.parse().ok()).collect::<Option<_>>()?;
        let [reads, _, read, _, writes, _, written, _, _, busy_milliseconds] = counters[..] else {
            return None;
        };
        Some(Self {
            operations: reads.saturating_add(writes),
            read_bytes: read.saturating_mul(SECTOR_BYTES),
            written_bytes: written.saturating_mul(SECTOR_BYTES),
            busy_milliseconds,
            rates,
        })
    }

    /// Returns what was done since an earlier sample.
    fn since(&self, before: &Self) -> Self {
        Self {
            operations: self.operations.saturating_sub(before.operations),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            busy_milliseconds: self.busy_milliseconds.saturating_sub(before.busy_milliseconds),
            rates: self.rates,
        }
    }

    /// Returns the part of the rates that was used by what was done in `seconds`. Operations that
    /// the bytes explain, as sequences of [`SEQUENTIAL_BYTES`] each, cost their bytes alone.
    fn part_of_rates(&self, seconds: f64) -> Option<Ratio> {
        let DiskRates { read_bytes, written_bytes, operations } = self.rates?;
        let part = |done: f64, rate: u64| Ratio::of(done, rate as f64 * seconds).get();
        let bytes = self.read_bytes as f64 + self.written_bytes as f64;
        let random = (self.operations as f64 - bytes / SEQUENTIAL_BYTES).max(0.0);
        // The bytes of an operation at a random place are part of what it was measured with.
        let left = (1.0 - random * PAGE_BYTES / bytes.max(1.0)).max(0.0);
        let sequential = part(self.read_bytes as f64 * left, read_bytes)
            + part(self.written_bytes as f64 * left, written_bytes);
        Some(Ratio::of(sequential + part(random, operations), 1.0))
    }
}

impl Interfaces {
    /// Returns the capacity of a line in bytes a second, if it is known.
    pub(super) fn capacity(&self, name: &str) -> Option<u64> {
        self.0.get(name).map(|interface| interface.capacity)
    }

    /// Reads `/proc/net/dev`: the name and a colon, eight counters of what was received, the first
    /// in bytes, and eight of what was sent.
    pub(super) fn read(text: &str, wanted: &[(&str, u64)]) -> Self {
        let read = |line: &str| {
            let (name, counters) = line.split_once(':')?;
            let name = name.trim();
            let (_, capacity) = *wanted.iter().find(|(wanted, _)| *wanted == name)?;
            let mut counters = counters.split_ascii_whitespace();
            let received = counters.next()?.parse().ok()?;
            let sent = counters.nth(7)?.parse().ok()?;
            Some((name.to_owned(), Interface { received, sent, capacity }))
        };
        Self(text.lines().filter_map(read).take(DEVICES_MAX).collect())
    }

    pub(super) fn since(
        &self,
        before: &Self,
        elapsed: Duration,
    ) -> impl Iterator<Item = (Resource, Ratio)> {
        let ratios = self.0.iter().filter_map(move |(name, now)| {
            let before = before.0.get(name)?;
            let capacity = now.capacity as f64 * elapsed.as_secs_f64();
            let of = |now: u64, before: u64| Ratio::of(now.saturating_sub(before) as f64, capacity);
            Some([
                (Resource::NetworkReceive(name.clone()), of(now.received, before.received)),
                (Resource::NetworkSend(name.clone()), of(now.sent, before.sent)),
            ])
        });
        ratios.flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_busy_while_it_has_something_to_do() {
        let text = |milliseconds: u64| {
            format!(
                "   8       0 sda 10 0 80 4 20 0 160 9 0 {milliseconds} 13 0 0 0 0 1 2\n   \
                 8       1 sda1 10 0 80 4 20 0 160 9 0 999 13 0 0 0 0 1 2\n"
            )
        };
        let [before, after] = [1_000, 1_500].map(|time| Disks::read(&text(time), &[("sda", None)]));
        let ratios: Vec<_> = after.since(&before, Duration::from_secs(2)).collect();
        assert_eq!(ratios, [(Resource::Disk("sda".to_owned()), Ratio::of(0.25, 1.0))]);
    }

    #[test]
    fn a_disk_with_known_rates_is_as_full_as_its_bytes_and_its_random_operations() {
        // In a second: 100 MiB read, 50 MiB written, or 200 operations at random places.
        let rates = DiskRates { read_bytes: 100 << 20, written_bytes: 50 << 20, operations: 200 };
        let sample = |reads: u64, read: u64, written: u64| {
            let text = format!("8 0 sda {reads} 9 {read} 9 0 9 {written} 9 9 0 9");
            Disks::read(&text, &[("sda", Some(rates))])
        };
        let part = |after: Disks| {
            let ratios: Vec<_> = after.since(&sample(0, 0, 0), Duration::from_secs(2)).collect();
            assert_eq!(ratios[1].0, Resource::DiskRate("sda".to_owned()));
            ratios[1].1.get()
        };
        let mebibytes = |count: u64| count * 2048;
        // In two seconds. Sequences of 128 KiB: 480 operations do not count as random ones.
        assert!((part(sample(480, mebibytes(60), 0)) - 0.3).abs() < 1e-9);
        assert!((part(sample(1, mebibytes(50), mebibytes(50))) - 0.75).abs() < 1e-9);
        // Pages of 4 KiB at random places: their bytes do not count again.
        let random = part(sample(200, 200 * 8, 0));
        assert!((0.48..=0.5).contains(&random), "{random}");
        assert!((part(sample(1, 0, mebibytes(900))) - 1.0).abs() < 1e-9);
        assert!(part(sample(0, 0, 0)).abs() < 1e-9);
    }

    #[test]
    fn each_direction_of_a_line_has_its_own_load() {
        let text = |received: u64, sent: u64| {
            format!(
                "Inter-|   Receive |  Transmit\n face |bytes packets|bytes packets\n\
                 \x20 eth0: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n\
                 \x20   lo: 5 1 0 0 0 0 0 0 5 1\n"
            )
        };
        let lines = |received, sent| Interfaces::read(&text(received, sent), &[("eth0", 1_000)]);
        let ratios: Vec<_> =
            lines(600, 2_000).since(&lines(100, 0), Duration::from_secs(1)).collect();
        let expected = [
            (Resource::NetworkReceive("eth0".to_owned()), Ratio::of(0.5, 1.0)),
            (Resource::NetworkSend("eth0".to_owned()), Ratio::FULL),
        ];
        assert_eq!(ratios, expected);
    }

    #[test]
    fn a_device_that_came_since_has_no_load_yet() {
        let none = Disks::default();
        let one = Disks::read("8 0 sda 0 0 0 0 0 0 0 0 0 7 0\n", &[("sda", None)]);
        assert_eq!(one.since(&none, Duration::from_secs(1)).count(), 0);
    }
}
