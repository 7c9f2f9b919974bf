use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Error, Result, bail, ensure};

use super::cleanup::clear;
use super::reset::Resets;
use crate::number::of_unit;
use crate::suite::{
    Content, Context, Environment, Failure, Gathered, Interrupt, Interrupted, Needs, Parameters,
    Preset, Progress, Reset, Round, SCHEMA, Sample, Store, SuiteOutcome, Target, TargetServer,
    TimeBudget, WorkloadRecord, difference,
};
use crate::system::shell;
use crate::targets::{self, Spec};

/// A workload with the values of its parameters.
#[derive(Clone)]
pub struct Chosen {
    /// The workload.
    pub workload: Arc<dyn crate::suite::Workload>,
    /// All its parameters.
    pub parameters: Parameters,
}

/// The settings of a run.
pub struct Plan {
    /// The workloads, in this order.
    pub chosen: Vec<Chosen>,
    /// The targets of the run.
    pub targets: Vec<Spec>,
    /// Other options of the targets.
    pub options: targets::Options,
    /// The number of rounds.
    pub rounds: u32,
    /// About how long the whole run may take. A limit reduces the rounds to at least one, and
    /// shortens workloads that choose their own duration.
    pub limit: Option<Duration>,
    /// The seed of all operations.
    pub seed: u64,
    /// The preset of the parameters.
    pub preset: Preset,
    /// True if targets may hold files already.
    pub here: bool,
    /// True if the files of the run are not removed at its end.
    pub keep: bool,
    /// True if the result in `output` is continued.
    pub resume: bool,
    /// The result directory.
    pub output: PathBuf,
    /// Commands run before every round.
    pub before_run: Vec<String>,
    /// The ways to empty caches.
    pub resets: Resets,
    /// True if no progress is shown.
    pub quiet: bool,
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    targets: Vec<Box<dyn Target>>,
    content: Arc<Content>,
    interrupt: Interrupt,
    progress: Progress,
    store: Store,
    outcome: SuiteOutcome,
    started: Instant,
    /// The name of the run's folder in every target.
    folder: String,
}

/// Numbers of RPCs by kind.
type Calls = BTreeMap<String, u64>;

/// A round to be run.
#[derive(Clone, Copy)]
struct Step {
    workload: usize,
    round: u32,
    target: usize,
    /// The time budget of the round.
    time: TimeBudget,
}

/// Runs a plan; the result is written to its directory even if the run fails.
///
/// # Errors
/// The first failure. Earlier measurements are kept, and the failure is in the result.
pub fn run(plan: &Plan, interrupt: &Interrupt) -> Result<SuiteOutcome> {
    let content = Arc::new(Content::new(plan.seed));
    let opened = plan.targets.iter().map(|spec| spec.open(&plan.options, &content));
    let targets: Vec<_> = opened.collect::<Result<_>>()?;
    run_on(plan, targets, content, interrupt)
}

/// Runs a plan on targets that are open.
///
/// # Errors
/// As for [`run`].
pub fn run_on(
    plan: &Plan,
    targets: Vec<Box<dyn Target>>,
    content: Arc<Content>,
    interrupt: &Interrupt,
) -> Result<SuiteOutcome> {
    check_targets(plan, &targets)?;
    let (store, outcome) = begin(plan, &targets)?;
    let rounds: u64 = plan.chosen.iter().map(|c| u64::from(c.workload.rounds(plan.rounds))).sum();
    let progress = Progress::new(rounds * targets.len() as u64, plan.quiet);
    let folder = format!("comity-bench-{}", std::process::id());
    let (interrupt, started) = (interrupt.clone(), Instant::now());
    let mut run =
        Run { plan, targets, content, interrupt, progress, store, outcome, started, folder };
    let result = run.all();
    let cleared = run.clear();
    run.progress.finish();
    run.outcome.complete = result.is_ok();
    run.save()?;
    result.and(cleared).with_context(|| {
        let place = plan.output.display();
        format!("the run ended early; what it measured is in {place}, --resume goes on")
    })?;
    Ok(run.outcome)
}

fn check_targets(plan: &Plan, targets: &[Box<dyn Target>]) -> Result<()> {
    ensure!(!targets.is_empty(), "no target: name a directory, nfs://host/export or peer:comity");
    for target in targets {
        let mut files = target.files()?;
        let entries = files.list(".", false).with_context(|| target.name().to_owned())?;
        let own = entries.iter().find(|entry| entry.name != "lost+found");
        if let Some(entry) = own.filter(|_| !plan.here) {
            let (name, found) = (target.name(), &entry.name);
            bail!("{name} is not empty (`{found}`): name an empty one, or add --here to use it");
        }
    }
    let fits = |chosen: &Chosen| targets.iter().any(|target| is_met(chosen, target.as_ref()));
    if let [chosen] = &plan.chosen[..]
        && !fits(chosen)
    {
        let what = match chosen.workload.needs() {
            Needs::Protocol => "a server: nfs://host/export or peer:comity",
            Needs::Keys => "a server that knows its callers by their keys: peer:keys",
            Needs::Locks => "a directory, or a server that is spoken to in 4.1 (?vers=4.1)",
            Needs::Directory | Needs::Files => "a directory",
        };
        bail!("{} needs {what}", chosen.workload.name());
    }
    Ok(())
}

fn is_met(chosen: &Chosen, target: &dyn Target) -> bool {
    chosen.workload.needs().met_by(target)
}

/// Creates a result, or opens the one that is continued.
fn begin(plan: &Plan, targets: &[Box<dyn Target>]) -> Result<(Store, SuiteOutcome)> {
    let mut outcome = empty(plan, targets);
    if !plan.resume {
        let store = Store::create(&plan.output)?;
        store.write(&outcome)?;
        return Ok((store, outcome));
    }
    let before = Store::read(&plan.output)?;
    ensure_same(plan, &before, &outcome)?;
    outcome.started = before.started;
    outcome.workloads = before.workloads;
    for workload in &mut outcome.workloads {
        workload.rounds.retain(|round| round.complete);
    }
    Ok((Store::at(&plan.output), outcome))
}

fn ensure_same(plan: &Plan, before: &SuiteOutcome, now: &SuiteOutcome) -> Result<()> {
    let names = |outcome: &SuiteOutcome| -> Vec<String> {
        outcome.targets.iter().map(|target| target.name.clone()).collect()
    };
    let work = |outcome: &SuiteOutcome| -> Vec<(String, Parameters)> {
        outcome.workloads.iter().map(|w| (w.name.clone(), w.parameters.clone())).collect()
    };
    let place = plan.output.display();
    ensure!(
        before.seed == now.seed,
        "{place} was begun with --seed {}: give it again",
        before.seed
    );
    ensure!(names(before) == names(now), "{place} is of {}: name these", names(before).join(" "));
    ensure!(
        work(before) == work(now),
        "{place} was begun with other workloads or parameters: give the same, or another --output"
    );
    Ok(())
}

fn empty(plan: &Plan, targets: &[Box<dyn Target>]) -> SuiteOutcome {
    let record = |chosen: &Chosen| WorkloadRecord {
        name: chosen.workload.name().to_owned(),
        parameters: chosen.parameters.clone(),
        rounds: Vec::new(),
    };
    let mut records: Vec<_> = targets.iter().map(|target| target.record()).collect();
    records.iter_mut().for_each(|record| record.cache_reset = plan.resets.about());
    SuiteOutcome {
        schema: SCHEMA,
        tool: concat!("comity ", env!("CARGO_PKG_VERSION")).to_owned(),
        started: now(),
        updated: now(),
        complete: false,
        failure: None,
        seed: plan.seed,
        preset: plan.preset,
        rounds: plan.rounds,
        environment: Environment::here(),
        targets: records,
        workloads: plan.chosen.iter().map(record).collect(),
    }
}

impl Run<'_> {
    /// Runs every round that is not in the result yet.
    fn all(&mut self) -> Result<()> {
        let time = TimeBudget::new(self.plan.limit);
        self.probe()?;
        let workloads = self.plan.chosen.len();
        (0..workloads)
            .try_for_each(|workload| self.rounds(workload, time.part(workloads - workload)))
    }

    /// Runs the rounds of a workload, or as many as there is time for.
    fn rounds(&mut self, workload: usize, time: TimeBudget) -> Result<()> {
        let begun = Instant::now();
        let rounds = self.plan.chosen[workload].workload.rounds(self.plan.rounds);
        let targets = self.targets.len();
        for round in 0..rounds {
            if round > 0 && !time.has_room(begun, round) {
                self.cut(workload, round, rounds);
                break;
            }
            for (place, target) in self.order(round).into_iter().enumerate() {
                let left = (rounds - round) as usize * targets - place;
                self.step(Step { workload, round, target, time: time.part(left) })?;
            }
        }
        Ok(())
    }

    /// Notes that the rounds from `round` on are left out.
    fn cut(&mut self, workload: usize, round: u32, rounds: u32) {
        let name = self.plan.chosen[workload].workload.name();
        let note = format!("{round} of {rounds} rounds: the time given is used up");
        self.progress.say(&format!("{name}: {note}"));
        self.progress.skip(u64::from(rounds - round) * self.targets.len() as u64);
        for last in self.outcome.workloads[workload].rounds.iter_mut().rev().take(1) {
            last.notes.push(note.clone());
        }
    }

    /// Makes the run's folder in every target and tries the basic operations.
    fn probe(&mut self) -> Result<()> {
        for (target, record) in self.targets.iter().zip(&mut self.outcome.targets) {
            let made = target.files()?.make_directory(&self.folder);
            made.with_context(|| {
                format!("{}: no folder can be made: {}", target.name(), who(target.as_ref()))
            })?;
            if target.name() != "idle" {
                record.sync_seconds = Some(targets::probe(target.as_ref(), &self.folder)?);
            }
        }
        Ok(())
    }

    /// The order of the targets in a round. Each round begins with another target, so that none
    /// always follows the same one.
    fn order(&self, round: u32) -> Vec<usize> {
        let count = self.targets.len();
        (0..count).map(|place| (place + round as usize) % count).collect()
    }

    fn step(&mut self, step: Step) -> Result<()> {
        let chosen = &self.plan.chosen[step.workload];
        let target = self.targets[step.target].as_ref();
        let (name, on) = (chosen.workload.name(), target.name());
        if !is_met(chosen, target) {
            self.progress
                .end(&format!("{name} on {on}: left out, it needs another kind of target"));
            return Ok(());
        }
        if self.outcome.workloads[step.workload].has(step.target, step.round) {
            self.progress.end(&format!("{name} on {on}, round {}: is there", step.round + 1));
            return Ok(());
        }
        self.progress.begin(&format!("{name} on {on}, round {}", step.round + 1));
        let (round, result) = self.measure(step);
        let line = format!("{name} on {on}, round {}: {}", step.round + 1, headline(&round));
        self.outcome.workloads[step.workload].rounds.push(round);
        if let Err(error) = &result {
            self.outcome.failure = Some(self.failure(step, error));
        }
        self.save()?;
        result.map(|()| self.progress.end(&line))
    }

    fn failure(&self, step: Step, error: &Error) -> Failure {
        Failure {
            workload: self.plan.chosen[step.workload].workload.name().to_owned(),
            target: self.targets[step.target].name().to_owned(),
            round: step.round,
            message: format!("{error:#}"),
        }
    }

    /// Runs a round; if it fails, it contains the measurements made before.
    fn measure(&self, step: Step) -> (Round, Result<()>) {
        let started = Instant::now();
        let mut round = Round {
            target: step.target,
            round: step.round,
            started_seconds: self.started.elapsed().as_secs_f64(),
            wall_seconds: 0.0,
            complete: false,
            samples: Vec::new(),
            latencies: Vec::new(),
            calls: None,
            notes: Vec::new(),
        };
        // Ctrl-C also reaches compilers, hooks and peers. Their end is then not an error.
        let result = self.perform(step, &mut round).map_err(|error| {
            let is_told = !self.interrupt.is_set() || is_interrupt(&error);
            if is_told { error } else { error.context(Interrupted) }
        });
        round.wall_seconds = started.elapsed().as_secs_f64();
        round.complete = result.is_ok();
        (round, result)
    }

    fn perform(&self, step: Step, round: &mut Round) -> Result<()> {
        let chosen = &self.plan.chosen[step.workload];
        let target = self.targets[step.target].as_ref();
        let name = chosen.workload.name();
        let what = || format!("{name} on {}", target.name());
        self.interrupt.check()?;
        self.hooks(step)?;
        let mut context = self.context(step);
        let directory = context.directory.clone();
        chosen.workload.check(&context).with_context(what)?;
        target.files().with_context(what)?.make_directory(&directory).with_context(what)?;
        let before = target.calls()?;
        let result = chosen.workload.run(&mut context).with_context(what);
        let Gathered { samples, latencies, notes } = context.gathered;
        (round.samples, round.latencies, round.notes) = (samples, latencies, notes);
        // A target that has ended explains the failure.
        target.check().with_context(what)?;
        result?;
        if let Some((before, after)) = before.zip(target.calls()?) {
            round.calls = Some(Self::sent(&before, after, &mut round.notes));
        }
        if !self.plan.keep {
            let cleared = clear(target.files()?.as_mut(), &directory);
            cleared.with_context(|| format!("{}: removing what was made", what()))?;
        }
        Ok(())
    }

    /// Returns the number of calls sent between two readings. A file system that was mounted again
    /// counts from 0.
    fn sent(before: &Calls, after: Calls, notes: &mut Vec<String>) -> Calls {
        let count = |calls: &Calls| calls.values().sum::<u64>();
        let is_new = before.iter().any(|(name, sent)| after.get(name).unwrap_or(&0) < sent);
        if is_new || count(&after) < count(before) {
            notes.push("RPCs are counted since the target was mounted anew".into());
            return after;
        }
        difference(before, &after)
    }

    fn context(&self, step: Step) -> Context<'_> {
        let chosen = &self.plan.chosen[step.workload];
        Context {
            target: self.targets[step.target].as_ref(),
            parameters: &chosen.parameters,
            // All targets of a round are given the same operations.
            seed: crate::rng::Rng::branch(self.plan.seed, u64::from(step.round)).bits(),
            directory: format!("{}/{}-{}", self.folder, chosen.workload.name(), step.round),
            content: Arc::clone(&self.content),
            interrupt: self.interrupt.clone(),
            reset: &self.plan.resets,
            progress: &self.progress,
            time: step.time,
            gathered: Gathered::default(),
        }
    }

    fn hooks(&self, step: Step) -> Result<()> {
        let round = step.round.to_string();
        let variables = [
            ("COMITY_BENCH_WORKLOAD", self.plan.chosen[step.workload].workload.name()),
            ("COMITY_BENCH_TARGET", self.targets[step.target].name()),
            ("COMITY_BENCH_ROUND", round.as_str()),
        ];
        let mut commands = self.plan.before_run.iter();
        commands.try_for_each(|command| shell(command, &variables)).context("--before-run")
    }

    fn save(&mut self) -> Result<()> {
        self.outcome.updated = now();
        self.store.write(&self.outcome)
    }

    /// Removes the run's folder from every target that still works.
    fn clear(&self) -> Result<()> {
        if self.plan.keep {
            let names: Vec<&str> = self.targets.iter().map(|target| target.name()).collect();
            self.progress.say(&format!("kept: {} of {}", self.folder, names.join(", ")));
            return Ok(());
        }
        let mut first = Ok(());
        for target in &self.targets {
            let cleared = target
                .files()
                .and_then(|mut files| clear(files.as_mut(), &self.folder).map_err(Error::from));
            let what = || format!("{} of {} is left there", self.folder, target.name());
            first = first.and(cleared.with_context(what));
        }
        first
    }
}

/// Describes the user who must be allowed to write to a target.
fn who(target: &dyn Target) -> String {
    match target.server() {
        Some(TargetServer { user, group, .. }) => {
            format!("calls are made as {user}:{group}, name who may write there by --uid and --gid")
        }
        None => "name one that you may write to".to_owned(),
    }
}

/// Returns the first figure of a round as a line, or why there is none.
fn headline(round: &Round) -> String {
    let told =
        |sample: &Sample| format!("{} {}", sample.metric, of_unit(sample.value, sample.unit));
    round.samples.first().map_or_else(|| "nothing measured".into(), told)
}

/// Returns whether a run ended because the user interrupted it.
#[must_use]
pub fn is_interrupt(error: &Error) -> bool {
    error.is::<Interrupted>() || error.chain().any(|cause| cause.is::<Interrupted>())
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
