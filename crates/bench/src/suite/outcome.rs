use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Latency, Parameters, Preset, Sample, TargetKind};

/// The version of the schema of `result.json`. A change that a reader of the version before would
/// misread makes it one more; fields that are only added do not.
pub const SCHEMA: u32 = 1;

/// What a run has measured: all of `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program and its version.
    pub tool: String,
    /// When it began, in seconds since 1970.
    pub started: u64,
    /// When the last round ended, in seconds since 1970.
    pub updated: u64,
    /// Whether all that was asked for has been measured.
    pub complete: bool,
    /// What ended it early, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The seed of all operations.
    pub seed: u64,
    /// Which preset the parameters come from.
    pub preset: Preset,
    /// Rounds asked for.
    pub rounds: u32,
    /// The machine that measured.
    pub environment: Environment,
    /// What was measured.
    pub targets: Vec<TargetRecord>,
    /// What was done, in this order.
    pub workloads: Vec<WorkloadRecord>,
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// During which workload.
    pub workload: String,
    /// On which target.
    pub target: String,
    /// In which round, from 0.
    pub round: u32,
    /// What happened, in a line.
    pub message: String,
}

/// The machine that measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Its name.
    pub host: String,
    /// The kernel's name, release and version.
    pub kernel: String,
    /// The processor's model.
    pub cpu: String,
    /// Processors that can be used.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Whether it is a virtual machine, where the processor says so.
    pub is_virtual: bool,
    /// How frequency is chosen, where the system says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Average length of the run queue over a minute at the start: above 1 others were at work.
    pub load: String,
    /// What a look at the clock takes at least, in nanoseconds: it has been taken off the latency
    /// of each operation. Absent in results of versions that took nothing off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_nanoseconds: Option<u64>,
}

/// A target as it was when the run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// As on the command line.
    pub name: String,
    /// How it is reached.
    pub kind: TargetKind,
    /// Which program serves it and in which version, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How it is mounted, where it is a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<MountRecord>,
    /// What its `fsync` is worth, as far as it can be told from outside.
    pub durability: String,
    /// Median of ten times in seconds that a write of 4 KiB and its `fsync` took before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_seconds: Option<f64>,
    /// How caches are emptied between runs: the hooks, or `not at all`.
    pub cache_reset: String,
    /// Connections and depth, where it is reached by protocol, and the like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// A mount, from `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRecord {
    /// What is mounted.
    pub source: String,
    /// Where.
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
    /// Its rounds, in the order in which they were run: targets take turns.
    pub rounds: Vec<Round>,
}

/// One round of a workload on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Which target, by its place in [`Outcome::targets`].
    pub target: usize,
    /// Which round, from 0. Rounds of one number were run one after the other on all targets, and
    /// are to be compared pair by pair.
    pub round: u32,
    /// When it began, in seconds since the run did.
    pub started_seconds: f64,
    /// How long all of it took, preparation and clearing included.
    pub wall_seconds: f64,
    /// Whether it ran to its end.
    pub complete: bool,
    /// What was measured.
    pub samples: Vec<Sample>,
    /// How long single operations took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<Latency>,
    /// RPCs the target was sent, by kind, where that can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<BTreeMap<String, u64>>,
    /// What a reader of the figures should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Outcome {
    /// The workload of a name.
    #[must_use]
    pub fn workload(&self, name: &str) -> Option<&WorkloadRecord> {
        self.workloads.iter().find(|workload| workload.name == name)
    }
}

impl WorkloadRecord {
    /// Whether a round was run to its end on a target.
    #[must_use]
    pub fn has(&self, target: usize, round: u32) -> bool {
        let is_it = |each: &&Round| each.target == target && each.round == round;
        self.rounds.iter().find(is_it).is_some_and(|round| round.complete)
    }
}
