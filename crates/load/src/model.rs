use std::collections::BTreeMap;
use std::time::Duration;

use crate::average::Averages;
use crate::bottleneck::bottleneck;
use crate::host::HostSample;
use crate::ratio::Ratio;
use crate::resource::Resource;

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
    pub fn resources(&self) -> impl Iterator<Item = (&Resource, &Averages)> {
        self.averages.iter()
    }

    /// Returns the resource that limits the server, if one does.
    #[must_use]
    pub fn bottleneck(&self) -> Option<(&Resource, &Averages)> {
        bottleneck(self.resources())
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
            let stat = format!("cpu {ticks} 0 0 0\n");
            HostSample::read(&HostTexts { stat: &stat, ..HostTexts::default() })
        };
        model.add(at(1), busy(0), &[]);
        model.add(at(1), busy(50), &[]);
        assert_eq!(model.resources().count(), 0);
    }

    #[test]
    fn a_resource_that_is_gone_is_forgotten() {
        let mut model = LoadModel::default();
        let disk = |ticks: u64| {
            let line = format!("8 0 sda 0 0 0 0 0 0 0 0 0 {ticks} 0\n");
            let texts = HostTexts { diskstats: &line, disks: &["sda"], ..HostTexts::default() };
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
