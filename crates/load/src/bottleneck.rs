use crate::average::Averages;
use crate::limits::BUSY;
use crate::resource::Resource;

/// Returns the resource that limits the server: the fullest one over the last minute, if it is so
/// full that calls wait for it. `None` means that the server could do more: its clients, or the
/// network to them, are the limit. A disk whose rates are known counts by them, and not by the time
/// in which it is busy: a disk that is always busy may do more.
pub fn bottleneck<'a>(
    load: impl Iterator<Item = (&'a Resource, &'a Averages)> + Clone,
) -> Option<(&'a Resource, &'a Averages)> {
    let all = load.clone();
    let is_rated = |resource: &Resource| {
        let Resource::Disk(disk) = resource else { return false };
        all.clone().any(|(other, _)| matches!(other, Resource::DiskRate(rated) if rated == disk))
    };
    let can_limit = |resource: &Resource| resource.can_limit() && !is_rated(resource);
    load.filter(|(resource, averages)| averages.minute.get() >= BUSY && can_limit(resource))
        .max_by(|(_, one), (_, other)| one.minute.get().total_cmp(&other.minute.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Ratio;

    fn limit_of(load: &[(Resource, f64)]) -> Option<Resource> {
        let load: Vec<_> = load
            .iter()
            .map(|(resource, part)| (resource.clone(), Averages::first(Ratio::of(*part, 1.0))))
            .collect();
        let found = bottleneck(load.iter().map(|(resource, averages)| (resource, averages)));
        found.map(|(resource, _)| resource.clone())
    }

    #[test]
    fn the_fullest_resource_is_the_bottleneck() {
        let disk = Resource::Disk("sda".to_owned());
        let load = [(Resource::Processor, 0.8), (disk.clone(), 0.95), (Resource::Threads, 0.1)];
        assert_eq!(limit_of(&load), Some(disk));
    }

    #[test]
    fn a_server_with_room_in_everything_is_not_the_bottleneck() {
        assert_eq!(limit_of(&[(Resource::Processor, 0.69), (Resource::Threads, 0.2)]), None);
        assert_eq!(limit_of(&[]), None);
    }

    #[test]
    fn a_disk_that_is_always_busy_limits_only_if_its_rates_are_reached_or_unknown() {
        let [sda, sdb] = ["sda", "sdb"].map(|name| Resource::Disk(name.to_owned()));
        let rate = Resource::DiskRate("sda".to_owned());
        let load = |part| [(sda.clone(), 1.0), (rate.clone(), part), (sdb.clone(), 0.8)];
        assert_eq!(limit_of(&load(0.4)), Some(sdb.clone()));
        assert_eq!(limit_of(&load(0.9)), Some(rate.clone()));
    }

    #[test]
    fn memory_in_use_for_caches_is_not_a_bottleneck() {
        assert_eq!(limit_of(&[(Resource::Memory, 0.99), (Resource::Processor, 0.3)]), None);
        assert_eq!(limit_of(&[(Resource::MemoryStall, 0.9)]), Some(Resource::MemoryStall));
    }
}
