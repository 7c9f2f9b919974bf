//! A sample of the machine: the counters of the kernel, parsed from its text files.

mod devices;
mod pressure;
mod processors;
mod schedule;

use std::time::Duration;

pub use self::devices::DiskRates;
use self::devices::{Disks, Interfaces};
use self::pressure::Pressure;
use self::processors::Processors;
use self::schedule::Schedule;
use crate::ratio::Ratio;
use crate::resource::Resource;
use crate::waiting::chance_to_wait;

/// The texts of a sample. A text that is empty or cannot be parsed gives no resource: a kernel may
/// lack one of the files, and a container may hide it.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostTexts<'a> {
    /// `/proc/stat`.
    pub stat: &'a str,
    /// `/proc/self/stat`.
    pub own_stat: &'a str,
    /// The numbers of the processors on which the server may run; all if none is named.
    pub processors: &'a [u32],
    /// A line for each thread of the server: its number, and `/proc/self/task/TID/schedstat`.
    pub threads: &'a str,
    /// `/proc/meminfo`.
    pub meminfo: &'a str,
    /// `/proc/pressure/cpu`.
    pub pressure_processor: &'a str,
    /// `/proc/pressure/memory`.
    pub pressure_memory: &'a str,
    /// `/proc/pressure/io`.
    pub pressure_storage: &'a str,
    /// `/proc/diskstats`.
    pub diskstats: &'a str,
    /// The disks to sample, with their rates if they are known: whole disks, no partitions.
    pub disks: &'a [(&'a str, Option<DiskRates>)],
    /// `/proc/net/dev`.
    pub network: &'a str,
    /// The network interfaces to sample, with the capacity of the line in bytes a second.
    pub lines: &'a [(&'a str, u64)],
}

/// The counters of a machine at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSample {
    processors: Option<Processors>,
    schedule: Schedule,
    memory: Option<HostMemory>,
    pressure: Pressure,
    disks: Disks,
    lines: Interfaces,
}

/// Amounts of memory in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HostMemory {
    total: u64,
    available: u64,
}

impl HostSample {
    /// Reads a sample from the texts of the kernel.
    #[must_use]
    pub fn read(texts: &HostTexts<'_>) -> Self {
        Self {
            processors: Processors::read(texts.stat, texts.own_stat, texts.processors),
            schedule: Schedule::read(texts.threads),
            memory: HostMemory::read(texts.meminfo),
            pressure: Pressure::read([
                texts.pressure_processor,
                texts.pressure_memory,
                texts.pressure_storage,
            ]),
            disks: Disks::read(texts.diskstats, texts.disks),
            lines: Interfaces::read(texts.network, texts.lines),
        }
    }

    /// Returns the number of the processors on which the server may run; 0 if it is not known.
    pub(crate) fn processors(&self) -> u32 {
        self.processors.map_or(0, |processors| processors.count())
    }

    /// Returns what a network interface can carry in each direction in bytes a second, if that is
    /// known.
    pub(crate) fn line_capacity(&self, name: &str) -> Option<u64> {
        self.lines.capacity(name)
    }

    /// Returns the load of each resource in the time `elapsed` since the sample `before`.
    pub(crate) fn since(&self, before: &Self, elapsed: Duration) -> Vec<(Resource, Ratio)> {
        let mut ratios = Vec::new();
        if let (Some(now), Some(was)) = (&self.processors, &before.processors) {
            let processors = now.since(was);
            let [(_, used), (_, own), _] = &processors;
            let others = Ratio::of(used.get() - own.get(), used.get()).get();
            let blamed = others * chance_to_wait(*used, now.count().into());
            ratios.extend(self.schedule.since(&before.schedule, blamed));
            ratios.extend(processors);
        }
        ratios.extend(self.memory.map(|memory| (Resource::Memory, memory.used())));
        ratios.extend(self.pressure.since(&before.pressure, elapsed));
        ratios.extend(self.disks.since(&before.disks, elapsed));
        ratios.extend(self.lines.since(&before.lines, elapsed));
        ratios
    }
}

impl HostMemory {
    fn read(meminfo: &str) -> Option<Self> {
        let field = |name: &str| {
            let rest = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_ascii_whitespace().next()?.parse().ok()
        };
        Some(Self { total: field("MemTotal:")?, available: field("MemAvailable:")? })
    }

    fn used(self) -> Ratio {
        Ratio::of(self.total.saturating_sub(self.available) as f64, self.total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_in_use_is_what_is_not_available() {
        let meminfo = "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    250 kB\n";
        assert_eq!(HostMemory::read(meminfo).unwrap().used(), Ratio::of(0.75, 1.0));
        assert_eq!(HostMemory::read("MemTotal: 1000 kB\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,200}", later in ".{0,200}") {
            let rates = DiskRates { read_bytes: 1, written_bytes: 1, operations: 1 };
            let sample = |text: &str| HostSample::read(&HostTexts {
                stat: text,
                own_stat: text,
                processors: &[],
                threads: text,
                meminfo: text,
                pressure_processor: text,
                pressure_memory: text,
                pressure_storage: text,
                diskstats: text,
                disks: &[("sda", Some(rates))],
                network: text,
                lines: &[("eth0", 1)],
            });
            let ratios = sample(&later).since(&sample(&text), Duration::from_secs(1));
            for (resource, ratio) in ratios {
                prop_assert!((0.0..=1.0).contains(&ratio.get()), "{resource}: {ratio:?}");
            }
        }
    }
}
