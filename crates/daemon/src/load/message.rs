//! The load of a server in messages.

use std::time::Duration;

use comity_load::{Amount, Demand, Rates, Ratio, ServerLoad};
use comity_proto::migration::{LoadAmount, LoadReply};

/// Returns the message that tells a load.
pub(crate) fn told(load: &ServerLoad) -> LoadReply {
    let Rates { calls, received_bytes, sent_bytes, .. } = load.own.rates;
    LoadReply {
        sampled_seconds: load.sampled.as_secs(),
        millicalls: thousandths(calls),
        received_bytes: whole(received_bytes),
        sent_bytes: whole(sent_bytes),
        own_millicores: thousandths(load.own.processor),
        millicores: amount(load.processors, 1e3),
        processor_slowdown: thousandths(load.processor_slowdown) as u32,
        lines: load.lines,
        receive: amount(load.receive, 1.0),
        send: amount(load.send, 1.0),
        memory_stall: thousandths(load.memory_stall.get()) as u32,
        storage_stall: thousandths(load.storage_stall.get()) as u32,
    }
}

/// Returns the load that a message tells.
pub(crate) fn heard(reply: &LoadReply) -> ServerLoad {
    let [calls, processor] =
        [reply.millicalls, reply.own_millicores].map(|number| number as f64 / 1e3);
    let [received_bytes, sent_bytes] =
        [reply.received_bytes, reply.sent_bytes].map(|bytes| bytes as f64);
    let [memory_stall, storage_stall] =
        [reply.memory_stall, reply.storage_stall].map(|part| Ratio::of(part.into(), 1e3));
    ServerLoad {
        sampled: Duration::from_secs(reply.sampled_seconds),
        own: Demand {
            rates: Rates { calls, received_bytes, sent_bytes, ..Rates::default() },
            processor,
        },
        processors: heard_amount(reply.millicores, 1e3),
        processor_slowdown: f64::from(reply.processor_slowdown.max(1_000)) / 1e3,
        lines: reply.lines,
        receive: heard_amount(reply.receive, 1.0),
        send: heard_amount(reply.send, 1.0),
        memory_stall,
        storage_stall,
    }
}

/// A conversion of a number that is negative or too large gives the nearest one.
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn thousandths(number: f64) -> u64 {
    whole(number * 1e3)
}

fn amount(Amount { used, capacity }: Amount, unit: f64) -> LoadAmount {
    LoadAmount { used: whole(used * unit), capacity: whole(capacity * unit) }
}

fn heard_amount(LoadAmount { used, capacity }: LoadAmount, unit: f64) -> Amount {
    Amount { used: used as f64 / unit, capacity: capacity as f64 / unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_heard_as_it_was_told() {
        let load = ServerLoad {
            sampled: Duration::from_secs(61),
            own: Demand {
                rates: Rates { calls: 1.5, received_bytes: 2e9, sent_bytes: 3.0, service: 0.0 },
                processor: 0.25,
            },
            processors: Amount { used: 1.75, capacity: 2.0 },
            processor_slowdown: 1.25,
            lines: 2,
            receive: Amount { used: 4.0, capacity: 5e9 },
            send: Amount { used: 6.0, capacity: 7e9 },
            memory_stall: Ratio::of(0.125, 1.0),
            storage_stall: Ratio::of(0.5, 1.0),
        };
        assert_eq!(heard(&told(&load)), load);
    }

    /// A peer may send any number.
    #[test]
    fn numbers_that_make_no_sense_give_ratios_all_the_same() {
        let most = LoadAmount { used: u64::MAX, capacity: 1 };
        let reply = LoadReply {
            millicalls: u64::MAX,
            millicores: most,
            send: most,
            memory_stall: u32::MAX,
            ..LoadReply::default()
        };
        let load = heard(&reply);
        assert!(load.slowdown().is_finite() && load.own.rates.calls.is_finite());
        assert_eq!(load.memory_stall, Ratio::FULL);
    }
}
