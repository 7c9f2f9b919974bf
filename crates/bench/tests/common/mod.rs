//! Plans for tests, and a target that can return wrong results.
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod watched;

use std::path::Path;
use std::sync::Arc;

use comity_bench::runner::{Chosen, Plan, Resets, run_on};
use comity_bench::suite::{Content, Interrupt, Parameters, Preset, Store, SuiteOutcome, Target};
use comity_bench::targets;

/// Parameters that make a workload small.
pub(crate) const SMALL: &[(&str, &[(&str, &str)])] = &[
    ("nfsstone", &[("operations", "2000"), ("directories", "3"), ("files", "5")]),
    ("lsr", &[("files", "50"), ("users", "1")]),
    ("postmark", &[("files", "50"), ("transactions", "50")]),
    ("grep", &[("files", "101"), ("directories", "5")]),
    ("andrew", &[("files", "5"), ("directories", "3")]),
    ("bonnie", &[("memory", "256K")]),
    (
        "badros",
        &[
            ("copies", "1,2"),
            ("rereads", "20"),
            ("appends", "20"),
            ("untar-files", "20"),
            ("untar-size", "100K"),
            ("ls-files", "20"),
            ("read-size", "256K"),
            ("random-reads", "50"),
            ("random-file", "64K"),
            ("unrelated", "64K"),
        ],
    ),
    ("compile", &[("sources", "4"), ("programs", "2"), ("probes", "4"), ("directories", "2")]),
    ("locks", &[("files", "1,10"), ("ranges", "3,30"), ("waiters", "1,20")]),
];

/// A workload with small parameters, except for those that are given.
pub(crate) fn chosen(name: &str, given: &[(&str, &str)]) -> Chosen {
    let mut all = comity_bench::workload::all().into_iter();
    let workload = all.find(|workload| workload.name() == name).unwrap();
    let mut parameters = Parameters::preset(workload.parameters(), Preset::Quick);
    let small = SMALL.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, small)| small);
    for (flag, text) in small.iter().chain(given) {
        let parameter = workload.parameters().iter().find(|each| each.name == *flag).unwrap();
        parameters.set(parameter, text).unwrap();
    }
    Chosen { workload, parameters }
}

/// A plan that runs workloads once and writes its result to a directory.
pub(crate) fn plan(chosen: Vec<Chosen>, output: &Path) -> Plan {
    Plan {
        chosen,
        targets: Vec::new(),
        options: targets::Options::default(),
        rounds: 1,
        limit: None,
        seed: 1,
        preset: Preset::Quick,
        here: false,
        keep: false,
        resume: false,
        output: output.to_path_buf(),
        before_run: Vec::new(),
        resets: Resets::default(),
        quiet: true,
    }
}

/// Runs a plan on a target; returns how the run ended, and the result that it wrote.
pub(crate) fn run(plan: &Plan, target: Box<dyn Target>) -> (Result<(), String>, SuiteOutcome) {
    let content = Arc::new(Content::new(plan.seed));
    let ran = run_on(plan, vec![target], content, &Interrupt::default());
    let ran = ran.map(drop).map_err(|error| format!("{error:#}"));
    (ran, Store::read(&plan.output).unwrap())
}

/// The names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
