use std::collections::BTreeMap;
use std::time::Duration;

use crate::average::Averages;
use crate::bottleneck::bottleneck;
use crate::host::HostSample;
use crate::limits::QUEUE_RATIO_MAX;
use crate::ratio::Ratio;
use crate::resource::Resource;
use crate::server_load::{Amount, Demand, ServerLoad};
use crate::shares::Rates;

/// The amount in use of a bounded resource of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Occupancy {
    /// The resource.
    pub resource: Resource,
    /// Its amount in use, in the unit of the bound.
    pub used: u64,
    /// The bound.
    pub bound: u64,
}

/// The load of a server, from samples that are added to it.
#[derive(Debug, Default)]
pub struct LoadModel {
    before: Option<(Duration, HostSample)>,
    averages: BTreeMap<Resource, Averages>,
}

impl LoadModel {
    /// Adds a sample of the machine and of the server, taken at the time `at` of a clock that is
    /// never set back. The first one gives no result yet: most resources are known by the change
    /// between two samples.
    pub fn add(&mut self, at: Duration, host: HostSample, server: &[Occupancy]) {
        let Some((then, before)) = self.before.replace((at, host)) else { return };
        let elapsed = at.saturating_sub(then);
        if elapsed.is_zero() {
            return;
        }
        let mut ratios: Vec<(Resource, Ratio)> = server
            .iter()
            .map(|one| (one.resource.clone(), Ratio::of(one.used as f64, one.bound as f64)))
            .collect();
        if let Some((_, host)) = &self.before {
            ratios.extend(host.since(&before, elapsed));
        }
        self.average(ratios, elapsed);
    }

    /// Returns each resource with its averages, in a constant order.
    pub fn resources(&self) -> impl Iterator<Item = (&Resource, &Averages)> + Clone {
        self.averages.iter()
    }

    /// Returns the resource that limits the server, if one does.
    #[must_use]
    pub fn bottleneck(&self) -> Option<(&Resource, &Averages)> {
        bottleneck(self.resources())
    }

    /// Returns the load as another server needs it, with the rates of all clients together and the
    /// time since sampling began.
    #[must_use]
    pub fn server_load(&self, rates: Rates, sampled: Duration) -> ServerLoad {
        let host = self.before.as_ref().map(|(_, host)| host);
        let minute = |resource: &Resource| {
            self.averages.get(resource).map_or(Ratio::IDLE, |averages| averages.minute)
        };
        let count = host.map_or(0.0, |host| host.processors().into());
        let used = |resource: &Resource| minute(resource).get() * count;
        let processors = Amount { used: used(&Resource::Processor), capacity: count };
        let stall = self.averages.get(&Resource::ServerStall);
        let measured = stall.map(|stall| 1.0 / (1.0 - stall.minute.get().min(QUEUE_RATIO_MAX)));
        ServerLoad {
            sampled,
            own: Demand { rates, processor: used(&Resource::ServerProcessor) },
            processors,
            // Threads that wait for each other are only known by the formula.
            processor_slowdown: processors.slowdown().max(measured.unwrap_or_default()),
            lines: self.line_count(),
            receive: self.fullest(|resource| matches!(resource, Resource::NetworkReceive(_))),
            send: self.fullest(|resource| matches!(resource, Resource::NetworkSend(_))),
            memory_stall: minute(&Resource::MemoryStall),
            storage_stall: minute(&Resource::StorageStall),
        }
    }

    fn line_count(&self) -> u32 {
        let is_line = |resource: &&Resource| matches!(resource, Resource::NetworkSend(_));
        self.averages.keys().filter(is_line).count() as u32
    }

    /// The fullest of some lines, in bytes a second.
    fn fullest(&self, is_meant: impl Fn(&Resource) -> bool) -> Amount {
        let lines = self.averages.iter().filter(|(resource, _)| is_meant(resource));
        let fullest =
            lines.max_by(|(_, one), (_, other)| one.minute.get().total_cmp(&other.minute.get()));
        let amount = fullest.and_then(|(line, averages)| {
            let (_, host) = self.before.as_ref()?;
            let capacity = host.line_capacity(line.device()?)? as f64;
            Some(Amount { used: averages.minute.get() * capacity, capacity })
        });
        amount.unwrap_or_default()
    }

    /// Resources that the sample does not contain, such as a removed disk, are forgotten.
    fn average(&mut self, ratios: Vec<(Resource, Ratio)>, elapsed: Duration) {
        let mut before = std::mem::take(&mut self.averages);
        for (resource, ratio) in ratios {
            let averages = match before.remove(&resource) {
                Some(mut averages) => {
                    averages.add(ratio, elapsed);
                    averages
                }
                None => Averages::first(ratio),
            };
            self.averages.insert(resource, averages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostTexts;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn occupied(used: u64) -> [Occupancy; 1] {
        [Occupancy { resource: Resource::Threads, used, bound: 64 }]
    }

    #[test]
    fn the_first_sample_only_begins() {
        let mut model = LoadModel::default();
        model.add(at(1), HostSample::default(), &occupied(32));
        assert_eq!(model.resources().count(), 0);
        model.add(at(2), HostSample::default(), &occupied(32));
        let threads: Vec<_> = model.resources().collect();
        assert_eq!(threads, [(&Resource::Threads, &Averages::first(Ratio::of(0.5, 1.0)))]);
    }

    #[test]
    fn two_samples_at_the_same_time_give_no_rate() {
        let mut model = LoadModel::default();
        let busy = |ticks: u64| {
            let stat = format!("cpu0 {ticks} 0 0 0\n");
            HostSample::read(&HostTexts { stat: &stat, ..HostTexts::default() })
        };
        model.add(at(1), busy(0), &[]);
        model.add(at(1), busy(50), &[]);
        assert_eq!(model.resources().count(), 0);
    }

    #[test]
    fn another_server_is_told_amounts_with_their_capacities() {
        // Of 100 ticks of each of two processors, 80 are busy, and 40 are the server's.
        let sample = |seconds: u64, sent: u64| {
            let [busy, own, rest, idle] = [80, 40, 20, 100].map(|ticks| ticks * seconds);
            let stat = format!("cpu0 {busy} 0 0 {rest}\ncpu1 0 0 0 {idle}\n");
            let own_nanoseconds = 10_000_000 * own;
            let own = format!("7 (comity) S 1 1 1 0 -1 0 0 0 0 0 {own} 0 0 0");
            let network = format!("lo: 0 0 0 0 0 0 0 0 {sent}\neth0: 0 0 0 0 0 0 0 0 {sent}\n");
            HostSample::read(&HostTexts {
                stat: &stat,
                own_stat: &own,
                threads: &format!("7 {own_nanoseconds} {} 7", 30 * own_nanoseconds),
                network: &network,
                lines: &[("lo", 1_000_000), ("eth0", 10_000)],
                ..HostTexts::default()
            })
        };
        let mut model = LoadModel::default();
        assert_eq!(model.server_load(Rates::default(), at(0)), ServerLoad::default());
        model.add(at(1), sample(0, 0), &[]);
        model.add(at(2), sample(1, 5_000), &[]);
        let rates = Rates { calls: 7.0, ..Rates::default() };
        let load = model.server_load(rates, at(2));
        assert_eq!(load.processors, Amount { used: 0.8, capacity: 2.0 });
        assert_eq!(load.own.processor, 0.4);
        // Threads waited 30 times as long as they ran. Two processors that are in use to 40 %, half
        // of it by others, make work wait for others with this chance.
        let chance = 0.4_f64.powf(6.0_f64.sqrt() - 1.0) / 2.0;
        assert!((load.processor_slowdown - (1.0 + 30.0 * chance)).abs() < 1e-9, "{load:?}");
        assert_eq!(load.lines, 2);
        assert_eq!(load.send, Amount { used: 5_000.0, capacity: 10_000.0 });
        assert_eq!(load.receive.used, 0.0);
        assert_eq!((load.own.rates, load.sampled), (rates, at(2)));
    }

    #[test]
    fn a_resource_that_is_gone_is_forgotten() {
        let mut model = LoadModel::default();
        let disk = |ticks: u64| {
            let line = format!("8 0 sda 0 0 0 0 0 0 0 0 0 {ticks} 0\n");
            let texts =
                HostTexts { diskstats: &line, disks: &[("sda", None)], ..HostTexts::default() };
            HostSample::read(&texts)
        };
        model.add(at(1), disk(0), &[]);
        model.add(at(2), disk(900), &[]);
        let busy = Averages::first(Ratio::of(0.9, 1.0));
        assert_eq!(model.bottleneck(), Some((&Resource::Disk("sda".to_owned()), &busy)));
        model.add(at(3), HostSample::default(), &[]);
        assert_eq!(model.bottleneck(), None);
    }
}
