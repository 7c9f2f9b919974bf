//! Disks and network interfaces.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::DEVICES_MAX;
use crate::ratio::Ratio;
use crate::resource::Resource;

/// Milliseconds in which each disk was busy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Disks(BTreeMap<String, u64>);

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
    /// Reads `/proc/diskstats`: numbers of the device, its name, and counters, of which the tenth
    /// is the time in milliseconds in which I/O was under way (iostats of the kernel's documents).
    pub(super) fn read(text: &str, wanted: &[&str]) -> Self {
        let read = |line: &str| {
            let mut fields = line.split_ascii_whitespace().skip(2);
            let name = fields.next().filter(|name| wanted.contains(name))?;
            Some((name.to_owned(), fields.nth(9)?.parse().ok()?))
        };
        Self(text.lines().filter_map(read).take(DEVICES_MAX).collect())
    }

    pub(super) fn since(
        &self,
        before: &Self,
        elapsed: Duration,
    ) -> impl Iterator<Item = (Resource, Ratio)> {
        let elapsed = elapsed.as_secs_f64() * 1000.0;
        self.0.iter().filter_map(move |(name, now)| {
            let busy = now.saturating_sub(*before.0.get(name)?);
            Some((Resource::Disk(name.clone()), Ratio::of(busy as f64, elapsed)))
        })
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
        let [before, after] = [1_000, 1_500].map(|time| Disks::read(&text(time), &["sda"]));
        let ratios: Vec<_> = after.since(&before, Duration::from_secs(2)).collect();
        assert_eq!(ratios, [(Resource::Disk("sda".to_owned()), Ratio::of(0.25, 1.0))]);
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
        let one = Disks::read("8 0 sda 0 0 0 0 0 0 0 0 0 7 0\n", &["sda"]);
        assert_eq!(one.since(&none, Duration::from_secs(1)).count(), 0);
    }
}
