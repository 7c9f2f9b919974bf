use crate::load_model::Consumer;

/// Programs that use resources of the servers' machines, and whether a move should be advised.
pub(super) struct Case {
    /// The name of the row.
    pub(super) name: &'static str,
    /// The consumer at each server, with the part of the resource that it uses.
    consumers: [Option<(Consumer, f64)>; 2],
    /// True if a move to the second server pays.
    pub(super) pays: bool,
}

const NOBODY: Option<(Consumer, f64)> = None;

/// Five cases in which a move pays, and five in which it does not: both servers have one disk.
pub(super) const CASES: &[Case] = &[
    case("cpu here", [Some((Consumer::Cpu, 0.9)), NOBODY], true),
    case("cpu here, less there", [Some((Consumer::Cpu, 0.9)), Some((Consumer::Cpu, 0.2))], true),
    case("memory here", [Some((Consumer::Memory, 1.0)), NOBODY], true),
    case("network here", [Some((Consumer::Network, 1.0)), NOBODY], true),
    case("other clients here", [Some((Consumer::Rpc, 1.0)), NOBODY], true),
    case("nobody", [NOBODY, NOBODY], false),
    case("cpu at both", [Some((Consumer::Cpu, 0.9)), Some((Consumer::Cpu, 0.9))], false),
    case("cpu there", [NOBODY, Some((Consumer::Cpu, 0.9))], false),
    case("disk here", [Some((Consumer::Disk, 1.0)), NOBODY], false),
    case("seek here", [Some((Consumer::Seek, 1.0)), NOBODY], false),
];

const fn case(name: &'static str, consumers: [Option<(Consumer, f64)>; 2], pays: bool) -> Case {
    Case { name, consumers, pays }
}

impl Case {
    /// Returns the consumer that starts before the servers, so that their averages begin with it.
    pub(super) fn before(&self, place: usize) -> Option<(Consumer, f64)> {
        self.consumers[place].filter(|(consumer, _)| !matches!(consumer, Consumer::Rpc))
    }

    /// Returns the consumer that calls the server.
    pub(super) fn after(&self, place: usize) -> Option<(Consumer, f64)> {
        self.consumers[place].filter(|(consumer, _)| matches!(consumer, Consumer::Rpc))
    }
}
