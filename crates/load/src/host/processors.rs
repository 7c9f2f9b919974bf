use crate::ratio::Ratio;
use crate::resource::Resource;

/// Time of all processors in ticks of the kernel, since the machine started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Processors {
    total: u64,
    idle: u64,
    interrupts: u64,
    /// Processor time of this process.
    own: u64,
}

impl Processors {
    /// Reads the first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq,
    /// softirq, steal; guest time is part of user. Time that was stolen by other machines of the
    /// host is not idle.
    pub(super) fn read(stat: &str, own_stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
        let [_user, _nice, _system, idle, rest @ ..] = &ticks[..] else { return None };
        let (waiting, rest) = rest.split_first().map_or((0, rest), |(first, rest)| (*first, rest));
        Some(Self {
            total: ticks.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks)),
            idle: idle.saturating_add(waiting),
            interrupts: rest.iter().take(2).fold(0, |sum: u64, ticks| sum.saturating_add(*ticks)),
            own: own_ticks(own_stat).unwrap_or_default(),
        })
    }

    pub(super) fn since(&self, before: &Self) -> [(Resource, Ratio); 3] {
        let spent = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before)) as f64;
        let total = spent(|one| one.total);
        [
            (Resource::Processor, Ratio::of(total - spent(|one| one.idle), total)),
            (Resource::ServerProcessor, Ratio::of(spent(|one| one.own), total)),
            (Resource::Interrupts, Ratio::of(spent(|one| one.interrupts), total)),
        ]
    }
}

/// Returns the user and system time in `/proc/self/stat` (proc_pid_stat(5), fields 14 and 15). The
/// second field is the name of the program, which may contain blanks and parentheses.
fn own_ticks(own_stat: &str) -> Option<u64> {
    let (_, fields) = own_stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()?.saturating_add(times.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(ratios: &[(Resource, Ratio)], resource: &Resource) -> f64 {
        ratios.iter().find(|(found, _)| found == resource).unwrap().1.get()
    }

    #[test]
    fn waiting_for_storage_is_idle_and_stolen_time_is_not() {
        let before =
            Processors::read("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n", "").unwrap();
        let after = Processors::read("cpu  120 0 110 840 10 4 6 10 0 0\n", "").unwrap();
        let ratios = after.since(&before);
        assert_eq!(part(&ratios, &Resource::Processor), 0.5);
        assert_eq!(part(&ratios, &Resource::Interrupts), 0.1);
        assert_eq!(part(&ratios, &Resource::ServerProcessor), 0.0);
    }

    #[test]
    fn the_time_of_the_server_is_found_behind_a_strange_name() {
        let own = |user, system| {
            format!("77 (a) b (c) S 1 77 77 0 -1 4194304 0 0 0 0 {user} {system} 9 9 20 0 1 0 0")
        };
        let before = Processors::read("cpu 0 0 0 0\n", &own(5, 5)).unwrap();
        let after = Processors::read("cpu 60 0 0 40\n", &own(20, 10)).unwrap();
        assert_eq!(part(&after.since(&before), &Resource::ServerProcessor), 0.2);
    }

    #[test]
    fn a_line_that_is_too_short_gives_nothing() {
        assert_eq!(Processors::read("cpu  1 2 3\n", ""), None);
        assert_eq!(Processors::read("cpu0 1 2 3 4\n", ""), None);
    }
}
