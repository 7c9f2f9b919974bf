use crate::load_model::Consumer;

/// Programs that use a resource of a server's machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Consumers {
    pub(super) consumer: Consumer,
    /// The part of the resource that each program uses.
    pub(super) level: f64,
    /// The number of programs.
    pub(super) count: usize,
}

/// The programs beside both servers, and whether a move should be advised.
pub(super) struct AdviceCase {
    /// The name of the row.
    pub(super) name: &'static str,
    /// The programs at each server.
    pub(super) consumers: [Option<Consumers>; 2],
    /// True if a move to the second server pays.
    pub(super) pays: bool,
}

const NOBODY: Option<Consumers> = None;

/// Five cases in which a move pays, and six in which it does not: both servers have one disk, and
/// clients that keep a server busy delay a client that calls rarely by little.
pub(super) const CASES: &[AdviceCase] = &[
    case("cpu here", [some(Consumer::Cpu, 1.0, 4), NOBODY], true),
    case("cpu here, less there", [some(Consumer::Cpu, 1.0, 4), some(Consumer::Cpu, 0.3, 1)], true),
    case("memory here", [some(Consumer::Memory, 1.0, 4), NOBODY], true),
    case("network here", [some(Consumer::Network("5e8"), 1.0, 4), NOBODY], true),
    case("two programs here", [some(Consumer::Cpu, 1.0, 2), NOBODY], true),
    case("other clients here", [some(Consumer::Rpc, 1.0, 4), NOBODY], false),
    case("nobody", [NOBODY, NOBODY], false),
    case("cpu at both", [some(Consumer::Cpu, 1.0, 4); 2], false),
    case("cpu there", [NOBODY, some(Consumer::Cpu, 1.0, 4)], false),
    case("disk here", [some(Consumer::Disk, 1.0, 1), NOBODY], false),
    case("seek here", [some(Consumer::Seek, 1.0, 1), NOBODY], false),
];

const fn case(name: &'static str, consumers: [Option<Consumers>; 2], pays: bool) -> AdviceCase {
    AdviceCase { name, consumers, pays }
}

const fn some(consumer: Consumer, level: f64, count: usize) -> Option<Consumers> {
    Some(Consumers { consumer, level, count })
}

impl Consumers {
    /// Returns whether they call the server, and so start after it. Others start before the
    /// servers, so that their averages begin with them.
    pub(super) const fn call_the_server(&self) -> bool {
        matches!(self.consumer, Consumer::Rpc)
    }
}
