use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Latency, Parameters, Preset, Sample, TargetKind};

/// The version of the schema of `result.json`. It is increased by a change that a reader of the
/// previous version would misread, not by additional fields.
pub const SCHEMA: u32 = 1;

/// The measurements of a run: all of `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteOutcome {
    /// The version of the schema: [`SCHEMA`].
    pub schema: u32,
    /// The program and its version.
    pub tool: String,
    /// The time at which the run began, in seconds since 1970.
    pub started: u64,
    /// The time at which the last round ended, in seconds since 1970.
    pub updated: u64,
    /// True if all measurements of the plan were made.
    pub complete: bool,
    /// The failure that ended the run early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The seed of all operations.
    pub seed: u64,
    /// The preset of the parameters.
    pub preset: Preset,
    /// Rounds asked for.
    pub rounds: u32,
    /// The machine that measured.
    pub environment: Environment,
    /// The targets.
    pub targets: Vec<TargetRecord>,
    /// The workloads, in this order.
    pub workloads: Vec<WorkloadRecord>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The workload during which it failed.
    pub workload: String,
    /// The target on which it failed.
    pub target: String,
    /// The round in which it failed, from 0 on.
    pub round: u32,
    /// The error, in a line.
    pub message: String,
}

/// The machine that measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// The name of the machine.
    pub host: String,
    /// The kernel's name, release and version.
    pub kernel: String,
    /// The processor's model.
    pub cpu: String,
    /// Processors that can be used.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// True if the processor reports a virtual machine.
    pub is_virtual: bool,
    /// The frequency governor, if the system names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Average length of the run queue over a minute at the start: above 1, other programs were
    /// running.
    pub load: String,
    /// Shortest time of reading the clock, in nanoseconds: it has been taken off the latency of
    /// each operation. Absent in results of versions that took nothing off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_nanoseconds: Option<u64>,
}

/// A target as it was when the run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// The target as the command line names it.
    pub name: String,
    /// Its kind.
    pub kind: TargetKind,
    /// The server program of the target with its version, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The mount, if it is a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<MountRecord>,
    /// The durability of its `fsync`, as far as it can be seen from outside.
    pub durability: String,
    /// Median time in seconds of ten writes of 4 KiB, each with its `fsync`, before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_seconds: Option<f64>,
    /// The way in which caches are emptied between runs: the hooks, or `not at all`.
    pub cache_reset: String,
    /// Other settings, such as connections and depth if it is reached by protocol.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// A mount, from `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRecord {
    /// The source of the mount.
    pub source: String,
    /// The mount point.
    pub point: String,
    /// The file system's type.
    pub filesystem: String,
    /// Options of the mount and of the file system.
    pub options: String,
}

/// A workload with what it measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Its name.
    pub name: String,
    /// All its parameters.
    pub parameters: Parameters,
    /// The rounds, in the order in which they were run: targets take turns.
    pub rounds: Vec<Round>,
}

/// One round of a workload on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The target, by its index in [`SuiteOutcome::targets`].
    pub target: usize,
    /// The number of the round, from 0. Rounds of one number were run one after the other on all
    /// targets, and are to be compared pair by pair.
    pub round: u32,
    /// The time at which the round began, in seconds since the run began.
    pub started_seconds: f64,
    /// The time of the whole round, with preparation and cleanup.
    pub wall_seconds: f64,
    /// True if the round ran to its end.
    pub complete: bool,
    /// The figures.
    pub samples: Vec<Sample>,
    /// The latencies of single operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<Latency>,
    /// RPCs sent to the target, by kind, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<BTreeMap<String, u64>>,
    /// Notes for readers of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl SuiteOutcome {
    /// The workload of a name.
    #[must_use]
    pub fn workload(&self, name: &str) -> Option<&WorkloadRecord> {
        self.workloads.iter().find(|workload| workload.name == name)
    }
}

impl WorkloadRecord {
    /// Returns whether a round was run to its end on a target.
    #[must_use]
    pub fn has(&self, target: usize, round: u32) -> bool {
        let is_it = |each: &&Round| each.target == target && each.round == round;
        self.rounds.iter().find(is_it).is_some_and(|round| round.complete)
    }
}
