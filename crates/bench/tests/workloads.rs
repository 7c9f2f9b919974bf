//! The workloads on real files: they run, leave nothing behind, and repeat the same operations with
//! the same seed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::sync::Arc;

use comity_bench::runner::Chosen;
use comity_bench::suite::{Content, Context, Parameter, Parameters, Place, Unit, Workload, bytes};
use comity_bench::targets::{DirectoryTarget, NullTarget};
use common::watched::{Lie, Watched};
use common::{SMALL, chosen, names, plan, run};

#[test]
fn every_workload_runs_on_a_directory_and_leaves_nothing_behind() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let all = SMALL.iter().map(|(name, _)| chosen(name, &[])).collect();
    let target = DirectoryTarget::open(place.path()).unwrap();
    let (ran, outcome) = run(&plan(all, output.path()), Box::new(target));
    ran.unwrap();
    assert!(outcome.complete);
    assert_eq!(names(place.path()), Vec::<String>::new());
    for workload in &outcome.workloads {
        let round = &workload.rounds[0];
        assert!(!round.samples.is_empty(), "{} measured nothing", workload.name);
        for sample in round.samples.iter().filter(|sample| sample.unit != Unit::Count) {
            let good = sample.value.is_finite() && sample.value > 0.0;
            assert!(good, "{}: {sample:?}", workload.name);
        }
    }
    let record = &outcome.targets[0];
    assert!(record.mount.is_some() && record.sync_seconds.is_some(), "{record:?}");
}

#[test]
fn files_are_kept_if_asked_and_others_are_not_touched() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(place.path().join("mine"), "precious").unwrap();
    let open = || Box::new(DirectoryTarget::open(place.path()).unwrap());
    let mut plan = plan(vec![chosen("postmark", &[])], &output.path().join("a"));
    let content = Arc::new(Content::new(1));
    let interrupt = comity_bench::suite::Interrupt::default();
    let refused = comity_bench::runner::run_on(&plan, vec![open()], content, &interrupt);
    let refused = format!("{:#}", refused.unwrap_err());
    assert!(refused.contains("is not empty (`mine`)") && refused.contains("--here"), "{refused}");

    plan.here = true;
    run(&plan, open()).0.unwrap();
    assert_eq!(names(place.path()), ["mine"]);
    plan.keep = true;
    plan.output = output.path().join("b");
    run(&plan, open()).0.unwrap();
    assert_eq!(names(place.path()).len(), 2);
    assert_eq!(std::fs::read(place.path().join("mine")).unwrap(), b"precious");
}

/// Returns the operations of a workload on a target.
fn operations(name: &str, seed: u64) -> Vec<String> {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let given: &[(&str, &str)] = if name == "badros" { &[("copies", "1")] } else { &[] };
    let mut plan = plan(vec![chosen(name, given)], output.path());
    plan.seed = seed;
    let target = Watched::new(place.path(), Lie::None).without_programs();
    let shared = target.shared();
    run(&plan, Box::new(target)).0.unwrap();
    let log = shared.log.lock().unwrap();
    log.clone()
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    for name in ["nfsstone", "postmark", "grep", "andrew", "badros", "bonnie", "lsr"] {
        let once = operations(name, 1);
        assert_eq!(once, operations(name, 1), "{name}");
        if ["nfsstone", "postmark", "badros"].contains(&name) {
            assert_ne!(once, operations(name, 2), "{name}");
        }
    }
}

#[test]
fn nfsstone_does_its_mix_exactly() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = DirectoryTarget::open(place.path()).unwrap();
    let whole = [("operations", "45522"), ("directories", "20"), ("files", "50")];
    let plan = plan(vec![chosen("nfsstone", &whole)], output.path());
    let (ran, outcome) = run(&plan, Box::new(target));
    ran.unwrap();
    let round = &outcome.workloads[0].rounds[0];
    let count = |kind: &str| {
        let latency = round.latencies.iter().find(|latency| latency.operation == kind);
        latency.map_or(0, comity_bench::suite::Latency::count)
    };
    let shares = [
        ("LOOKUP", 24_272, 53.0, 1.0),
        ("READ", 14_655, 32.0, 1.0),
        ("READLINK", 3_435, 7.5, 0.1),
        ("WRITE", 1_466, 3.2, 0.1),
        ("GETATTR", 1_053, 2.3, 0.1),
        ("CREATE", 641, 1.4, 0.1),
    ];
    for (kind, wanted, percent, digit) in shares {
        assert_eq!(count(kind), wanted, "{kind}");
        // The original has its figures with this many digits.
        let found = wanted as f64 / 455.22;
        assert!((found - percent).abs() <= digit / 2.0, "{kind}: {found} %, not {percent}");
    }
    assert_eq!(
        round.latencies.iter().map(comity_bench::suite::Latency::count).sum::<u64>(),
        45_522
    );
}

#[test]
fn nfsstone_has_no_more_files_open_than_a_program_may() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let large = [("operations", "3000"), ("directories", "12"), ("files", "100"), ("workers", "5")];
    let plan = plan(vec![chosen("nfsstone", &large)], output.path());
    let target = Watched::new(place.path(), Lie::None);
    let shared = target.shared();
    run(&plan, Box::new(target)).0.unwrap();
    let most = shared.open_most.load(std::sync::atomic::Ordering::Relaxed);
    assert!((1000..=1005).contains(&most), "{most} files were open at a time");
}

#[test]
fn every_workload_on_files_runs_on_the_idle_target() {
    let output = tempfile::tempdir().unwrap();
    let names = ["nfsstone", "lsr", "postmark", "bonnie"];
    let all = names.iter().map(|name| chosen(name, &[])).collect();
    let plan = plan(all, output.path());
    let target = NullTarget::new(Arc::new(Content::new(plan.seed)));
    let (ran, outcome) = run(&plan, Box::new(target));
    ran.unwrap();
    assert!(outcome.complete);
}

#[test]
fn targets_take_turns_and_a_hook_runs_before_each_round() {
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let output = tempfile::tempdir().unwrap();
    let log = output.path().join("log");
    let mut plan = plan(vec![chosen("lsr", &[])], output.path());
    plan.rounds = 2;
    let said = "echo $COMITY_BENCH_WORKLOAD $COMITY_BENCH_ROUND";
    plan.before_run = vec![format!("{said} >> {}", log.display())];
    let open = |place: &tempfile::TempDir| -> Box<dyn comity_bench::suite::Target> {
        Box::new(DirectoryTarget::open(place.path()).unwrap())
    };
    let content = Arc::new(Content::new(1));
    let interrupt = comity_bench::suite::Interrupt::default();
    let targets = places.iter().map(open).collect();
    let outcome = comity_bench::runner::run_on(&plan, targets, content, &interrupt).unwrap();
    let rounds = outcome.workloads[0].rounds.iter();
    let order: Vec<_> = rounds.map(|round| (round.round, round.target)).collect();
    assert_eq!(order, [(0, 0), (0, 1), (1, 1), (1, 0)]);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "lsr 0\nlsr 0\nlsr 1\nlsr 1\n");
}

#[test]
fn every_preset_can_be_read_and_every_flag_has_a_help_text() {
    for workload in comity_bench::workload::all() {
        for each in workload.parameters() {
            for text in [each.paper, each.quick, each.modern] {
                let checked = each.kind.check(text);
                assert!(checked.is_ok(), "{} --{}: {checked:?}", workload.name(), each.name);
            }
            assert!(!each.about.is_empty() && !each.about.ends_with('.'), "{}", each.name);
        }
        assert!(!workload.about().ends_with('.') && workload.origin().ends_with('.'));
    }
    assert_eq!(bytes("1K").unwrap(), 1024);
}

#[test]
fn a_run_whose_time_is_used_up_measures_everything_once() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut plan = plan(vec![chosen("lsr", &[]), chosen("postmark", &[])], output.path());
    (plan.rounds, plan.limit) = (50, Some(std::time::Duration::from_millis(1)));
    let (ran, outcome) = run(&plan, Box::new(DirectoryTarget::open(place.path()).unwrap()));
    ran.unwrap();
    assert!(outcome.complete);
    for workload in &outcome.workloads {
        assert_eq!(workload.rounds.len(), 1, "{}", workload.name);
        let notes = &workload.rounds[0].notes;
        let told = notes.iter().any(|note| note.starts_with("1 of 50 rounds: the time"));
        assert!(told, "{notes:?}");
    }
}

/// A workload whose figure is not a number.
struct Nought;

impl Workload for Nought {
    fn name(&self) -> &'static str {
        "nought"
    }

    fn about(&self) -> &'static str {
        "Nothing, in no time"
    }

    fn origin(&self) -> &'static str {
        "Made up for this test."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn run(&self, context: &mut Context<'_>) -> anyhow::Result<()> {
        context.sample("rate", &[], f64::NAN, Unit::OperationsPerSecond);
        context.sample("seconds", &[], 1.0, Unit::Seconds);
        Ok(())
    }
}

#[test]
fn a_figure_that_is_not_a_number_becomes_a_note() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let workload = Chosen { workload: Arc::new(Nought), parameters: Parameters::default() };
    let target = DirectoryTarget::open(place.path()).unwrap();
    let (ran, outcome) = run(&plan(vec![workload], output.path()), Box::new(target));
    ran.unwrap();
    let round = &outcome.workloads[0].rounds[0];
    assert_eq!(round.samples.len(), 1, "{:?}", round.samples);
    assert_eq!(round.notes, ["rate: no figure, nothing was done"]);
}

#[test]
fn a_word_that_is_in_every_source_can_be_searched_for() {
    let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = DirectoryTarget::open(place.path()).unwrap();
    let chosen = chosen("grep", &[("pattern", "Source")]);
    run(&plan(vec![chosen], output.path()), Box::new(target)).0.unwrap();
}

#[test]
fn a_user_who_may_not_give_files_away_lists_own_ones() {
    let lsr = |users: &str| {
        let (place, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let chosen = chosen("lsr", &[("users", users)]);
        let target = Watched::new(place.path(), Lie::OwnersStay);
        run(&plan(vec![chosen], output.path()), Box::new(target))
    };
    let (ran, outcome) = lsr("1,10,100");
    ran.unwrap();
    let round = &outcome.workloads[0].rounds[0];
    assert!(round.samples.iter().all(|sample| sample.at["users"] == Place::from(1_u64)));
    let notes = [10, 100].map(|users| {
        format!("{users} users were left out: giving files to other users takes root")
    });
    assert_eq!(round.notes, notes);
    let error = lsr("10,100").0.unwrap_err();
    assert!(error.contains("run as root, or --users 1"), "{error}");
}
