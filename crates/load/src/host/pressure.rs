use std::time::Duration;

use crate::ratio::Ratio;
use crate::resource::Resource;

/// Time in which some task waited for processors, for memory and for storage, in microseconds
/// since the machine started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pressure([Option<u64>; 3]);

impl Pressure {
    /// Reads the files of `/proc/pressure` in this order.
    pub(super) fn read(texts: [&str; 3]) -> Self {
        Self(texts.map(total))
    }

    pub(super) fn since(
        &self,
        before: &Self,
        elapsed: Duration,
    ) -> impl Iterator<Item = (Resource, Ratio)> {
        let resources =
            [Resource::ProcessorStall, Resource::MemoryStall, Resource::StorageStall].into_iter();
        let elapsed = elapsed.as_micros() as f64;
        let stalls = self.0.into_iter().zip(before.0);
        resources.zip(stalls).filter_map(move |(resource, (now, before))| {
            Some((resource, Ratio::of(now?.saturating_sub(before?) as f64, elapsed)))
        })
    }
}

/// Returns the total of the line `some`, which ends in `total=MICROSECONDS`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_the_part_of_the_time_in_which_some_task_waited() {
        let text = |total: u64| {
            format!(
                "some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n\
                 full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
            )
        };
        let before = Pressure::read([&text(1_000), "", &text(0)]);
        let after = Pressure::read([&text(501_000), &text(3), &text(0)]);
        let ratios: Vec<_> = after.since(&before, Duration::from_secs(2)).collect();
        let expected = [
            (Resource::ProcessorStall, Ratio::of(0.25, 1.0)),
            (Resource::StorageStall, Ratio::IDLE),
        ];
        assert_eq!(ratios, expected);
    }
}
