use std::time::Duration;

use crate::ratio::Ratio;
use crate::shares::Rates;
use crate::waiting::chance_to_wait;

/// An amount of a resource in use and its capacity, both in the same unit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amount {
    /// The amount in use.
    pub used: f64,
    /// The capacity; 0 if it is not known.
    pub capacity: f64,
}

/// The use that clients make of a server in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Demand {
    /// Calls and bytes.
    pub rates: Rates,
    /// Seconds of a processor.
    pub processor: f64,
}

/// The load of a server as another one needs it to predict what a move would change: averages over
/// a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerLoad {
    /// The time since sampling began.
    pub sampled: Duration,
    /// The use that all its clients together make of it.
    pub own: Demand,
    /// The processors that all programs use, of those on which the server may run.
    pub processors: Amount,
    /// The time that the server takes for its work, as a multiple of the time that it would take
    /// alone on its processors.
    pub processor_slowdown: f64,
    /// The number of lines whose capacity is known.
    pub lines: u32,
    /// The fullest line, in bytes received in a second.
    pub receive: Amount,
    /// The fullest line, in bytes sent in a second.
    pub send: Amount,
    /// Time in which a task waited for memory.
    pub memory_stall: Ratio,
    /// Time in which a task waited for storage.
    pub storage_stall: Ratio,
}

impl Default for ServerLoad {
    /// An idle server of which nothing is known.
    fn default() -> Self {
        Self {
            sampled: Duration::ZERO,
            own: Demand::default(),
            processors: Amount::default(),
            processor_slowdown: 1.0,
            lines: 0,
            receive: Amount::default(),
            send: Amount::default(),
            memory_stall: Ratio::IDLE,
            storage_stall: Ratio::IDLE,
        }
    }
}

impl Amount {
    /// Returns the part of the capacity that is in use.
    #[must_use]
    pub fn ratio(self) -> Ratio {
        Ratio::of(self.used, self.capacity)
    }

    /// Returns the slowdown by processors of which this amount is in use.
    pub(crate) fn slowdown(self) -> f64 {
        slowdown(self.ratio(), self.capacity)
    }

    fn plus(self, more: f64) -> Self {
        Self { used: (self.used + more).max(0.0), ..self }
    }
}

impl Demand {
    /// Returns the demand of clients that make this part of the calls.
    #[must_use]
    pub fn part(self, part: Ratio) -> Self {
        let Rates { calls, received_bytes, sent_bytes, service } = self.rates;
        let [calls, received_bytes, sent_bytes, service, processor] =
            [calls, received_bytes, sent_bytes, service, self.processor]
                .map(|amount| amount * part.get());
        Self { rates: Rates { calls, received_bytes, sent_bytes, service }, processor }
    }
}

impl ServerLoad {
    /// Returns how many times as long a call takes as on an idle server: the resource at which
    /// calls wait longest decides. Storage is left out, because servers between which exports move
    /// have the same storage.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        self.queues().map(|(_, _, slowdown)| slowdown).into_iter().fold(1.0, f64::max)
    }

    /// Returns the resource at which calls wait longest, and the part of it that is in use.
    #[must_use]
    pub fn slowest(&self) -> (&'static str, Ratio) {
        let slowest = self.queues().into_iter().max_by(|(.., a), (.., b)| a.total_cmp(b));
        slowest.map_or(("nothing", Ratio::IDLE), |(name, ratio, _)| (name, ratio))
    }

    /// Returns this load with the demand of more clients.
    #[must_use]
    pub fn with(self, more: Demand) -> Self {
        self.changed(more, 1.0)
    }

    /// Returns this load without the demand of some clients.
    #[must_use]
    pub fn without(self, gone: Demand) -> Self {
        self.changed(gone, -1.0)
    }

    fn changed(self, demand: Demand, sign: f64) -> Self {
        let sum = |own: f64, more: f64| (own + sign * more).max(0.0);
        let processors = self.processors.plus(sign * demand.processor);
        let slowed = processors.slowdown() / self.processors.slowdown();
        let (own, more) = (self.own.rates, demand.rates);
        Self {
            own: Demand {
                rates: Rates {
                    calls: sum(own.calls, more.calls),
                    received_bytes: sum(own.received_bytes, more.received_bytes),
                    sent_bytes: sum(own.sent_bytes, more.sent_bytes),
                    service: sum(own.service, more.service),
                },
                processor: sum(self.own.processor, demand.processor),
            },
            processors,
            processor_slowdown: self.processor_slowdown * slowed,
            receive: self.receive.plus(sign * more.received_bytes),
            send: self.send.plus(sign * more.sent_bytes),
            ..self
        }
    }

    /// The resources with the part in use, and the slowdown of calls by each.
    fn queues(&self) -> [(&'static str, Ratio, f64); 4] {
        let one = |name, ratio| (name, ratio, slowdown(ratio, 1.0));
        [
            ("processor", self.processors.ratio(), self.processor_slowdown),
            one("network receive", self.receive.ratio()),
            one("network send", self.send.ratio()),
            one("memory stall", self.memory_stall),
        ]
    }
}

/// Returns how many times as long a call takes where it shares so many processors, or one line,
/// with other work. A call that waits takes turns with it, and so takes twice as long.
fn slowdown(ratio: Ratio, count: f64) -> f64 {
    1.0 + chance_to_wait(ratio, count)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A server whose processors are in use to this part, half of it by itself for 1,000 calls.
    pub(crate) fn busy(part: f64, processors: f64) -> ServerLoad {
        let used = part * processors;
        ServerLoad {
            sampled: Duration::from_secs(300),
            own: Demand {
                rates: Rates { calls: 1_000.0, received_bytes: 1e5, sent_bytes: 1e6, service: 0.0 },
                processor: used / 2.0,
            },
            processors: Amount { used, capacity: processors },
            processor_slowdown: Amount { used, capacity: processors }.slowdown(),
            ..ServerLoad::default()
        }
    }

    #[test]
    fn the_resource_at_which_calls_wait_longest_decides() {
        // Eight processors of which 80 % are in use delay calls less than a line at 60 %.
        let send = Amount { used: 60.0, capacity: 100.0 };
        let load = ServerLoad { send, ..busy(0.8, 8.0) };
        assert_eq!(load.slowest(), ("network send", Ratio::of(0.6, 1.0)));
        assert!((load.slowdown() - 1.6).abs() < 1e-9);
        assert_eq!(ServerLoad::default().slowdown(), 1.0);
    }

    #[test]
    fn a_demand_that_is_taken_away_and_added_again_changes_nothing() {
        let load = busy(0.8, 2.0);
        let demand = load.own.part(Ratio::of(0.25, 1.0));
        assert_eq!(demand.rates.calls, 250.0);
        let without = load.without(demand);
        assert!((without.processors.used - 1.4).abs() < 1e-12);
        assert_eq!(without.own.rates.sent_bytes, 750_000.0);
        let again = without.with(demand);
        assert!((again.processors.used - load.processors.used).abs() < 1e-12);
    }
}
