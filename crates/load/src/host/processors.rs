use crate::ratio::Ratio;
use crate::resource::Resource;

/// Time of the processors on which the server may run, in ticks of the kernel, since the machine
/// started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Processors {
    /// Number of these processors.
    count: u32,
    total: u64,
    idle: u64,
    interrupts: u64,
    /// Processor time of this process.
    own: u64,
}

impl Processors {
    /// Reads the lines `cpuN` of `/proc/stat` (proc_stat(5)) for the `allowed` processors, or all
    /// of them if none is named.
    pub(super) fn read(stat: &str, own_stat: &str, allowed: &[u32]) -> Option<Self> {
        let is_allowed = |number: u32| allowed.is_empty() || allowed.contains(&number);
        let ticks = stat.lines().filter_map(|line| {
            let (number, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
            Ticks::read(ticks).filter(|_| number.parse().is_ok_and(is_allowed))
        });
        let none = Self { own: own_ticks(own_stat).unwrap_or_default(), ..Self::default() };
        Some(ticks.fold(none, Self::with)).filter(|read| read.count > 0)
    }

    fn with(self, ticks: Ticks) -> Self {
        Self {
            count: self.count.saturating_add(1),
            total: self.total.saturating_add(ticks.total),
            idle: self.idle.saturating_add(ticks.idle),
            interrupts: self.interrupts.saturating_add(ticks.interrupts),
            own: self.own,
        }
    }

    /// Returns the number of the processors.
    pub(super) const fn count(&self) -> u32 {
        self.count
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

/// Time of one processor in ticks.
struct Ticks {
    total: u64,
    idle: u64,
    interrupts: u64,
}

impl Ticks {
    /// Reads user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
    /// Time that was stolen by other machines of the host is not idle.
    fn read(fields: &str) -> Option<Self> {
        let fields = fields.split_ascii_whitespace().map_while(|field| field.parse().ok());
        let ticks: Vec<u64> = fields.take(8).collect();
        let [_user, _nice, _system, idle, rest @ ..] = &ticks[..] else { return None };
        let (waiting, rest) = rest.split_first().map_or((0, rest), |(first, rest)| (*first, rest));
        let sum = |ticks: &[u64]| ticks.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
        Some(Self {
            total: sum(&ticks),
            idle: idle.saturating_add(waiting),
            interrupts: sum(rest.get(..2).unwrap_or(rest)),
        })
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
        let read = |line| Processors::read(line, "", &[]).unwrap();
        let before = read("cpu  9 9 9 9\ncpu0 100 0 100 800 0 0 0 0 0 0\n");
        let after = read("cpu  9 9 9 9\ncpu0 120 0 110 840 10 4 6 10 0 0\n");
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
        let before = Processors::read("cpu0 0 0 0 0\n", &own(5, 5), &[]).unwrap();
        let after = Processors::read("cpu0 60 0 0 40\n", &own(20, 10), &[]).unwrap();
        assert_eq!(part(&after.since(&before), &Resource::ServerProcessor), 0.2);
    }

    /// A service or a container may be bound to some processors: the load of others is not its own.
    #[test]
    fn only_processors_on_which_the_server_may_run_count() {
        let stat = |busy: [u64; 3]| {
            let line = |(number, busy)| format!("cpu{number} {busy} 0 0 {}\n", 100 - busy);
            (0..).zip(busy).map(line).collect::<String>()
        };
        let read = |busy, allowed: &[u32]| Processors::read(&stat(busy), "", allowed).unwrap();
        let used = |allowed: &[u32]| {
            let ratios = read([30, 50, 90], allowed).since(&Processors::default());
            part(&ratios, &Resource::Processor)
        };
        assert_eq!(used(&[1]), 0.5);
        assert_eq!(used(&[1, 2]), 0.7);
        assert_eq!(used(&[]), 170.0 / 300.0);
        assert_eq!(read([0; 3], &[0, 2]).count(), 2);
        assert_eq!(Processors::read(&stat([0; 3]), "", &[7]), None);
    }

    #[test]
    fn a_line_that_is_too_short_gives_nothing() {
        assert_eq!(Processors::read("cpu0 1 2 3\n", "", &[]), None);
        assert_eq!(Processors::read("cpu  1 2 3 4\n", "", &[]), None);
    }
}
