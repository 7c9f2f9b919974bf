use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::call_templates::CallTemplates;
use crate::fixture_tree::{self, FixtureTree, LARGE_BYTES, SMALL_FILES, WRITTEN_FILES};
use crate::load::{Client, Load, LoadOutcome, OpenLoad, Stop};
use crate::operation::{Operation, Stable};
use crate::prober::Pages;
use crate::suite::{
    Context, Files, Latency, Needs, Parameters, Place, TargetServer, Unit, Workload,
};

mod parameters;
mod speaker;

use speaker::Speaker;

/// Single procedures under load, by our own RPC client.
pub(super) struct Rpc;

impl Workload for Rpc {
    fn name(&self) -> &'static str {
        "rpc"
    }

    fn about(&self) -> &'static str {
        "NULL, GETATTR, LOOKUP, ACCESS, READ and WRITE of 4 KiB and 1 MiB, CREATE and REMOVE, \
         READDIRPLUS: latency percentiles and throughput by depth and connections"
    }

    fn origin(&self) -> &'static str {
        "One thread makes calls that were encoded beforehand and holds every reply against the \
         first of its kind, which was decoded in full. Closed loop (the default): each answer is \
         followed by the next call; that measures throughput. Open loop (--rate): calls are made \
         when they are due, and latencies count from then; only such percentiles hide no waiting."
    }

    fn parameters(&self) -> &'static [crate::suite::Parameter] {
        parameters::ALL
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        operations(parameters.text("operations")?)?;
        let some = |name| parameters.counts(name).map(|counts| !counts.contains(&0));
        ensure!(some("connections")? && some("depths")?, "--connections, --depths: at least 1");
        let seconds = parameters.number("seconds")?;
        ensure!(seconds > 0.0 && seconds <= SECONDS_MAX, "--seconds: above 0, at most a day");
        Ok(())
    }

    fn needs(&self) -> Needs {
        Needs::Protocol
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let server = context.target().server().context("rpc needs a server")?;
        prepare(context)?;
        let parameters = context.parameters();
        let wanted = operations(parameters.text("operations")?)?;
        let (all_connections, depths) =
            (parameters.counts("connections")?, parameters.counts("depths")?);
        let points = wanted.len() * all_connections.len() * depths.len();
        let mut done = 0;
        for operation in wanted {
            for connections in &all_connections {
                for depth in &depths {
                    let left = (points - done) as u32;
                    let (connections, depth) = (*connections, *depth);
                    let point = Point { server, operation, connections, depth, done, left };
                    point.measure(context)?;
                    done += 1;
                    context.advance(done as f64 / points as f64);
                }
            }
        }
        Ok(())
    }
}

/// The operation that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    One(&'static str, Operation),
    CreateRemove,
}

const OPERATIONS: &[(&str, Wanted)] = &[
    ("null", Wanted::One("NULL", Operation::Null)),
    ("getattr", Wanted::One("GETATTR", Operation::Getattr)),
    ("lookup", Wanted::One("LOOKUP", Operation::Lookup)),
    ("access", Wanted::One("ACCESS", Operation::Access)),
    ("read-4k", Wanted::One("READ 4 KiB", Operation::Read(4 << 10))),
    ("read-1m", Wanted::One("READ 1 MiB", Operation::Read(1 << 20))),
    ("write-4k", Wanted::One("WRITE 4 KiB", Operation::Write(4 << 10, Stable::Unstable))),
    ("write-1m", Wanted::One("WRITE 1 MiB", Operation::Write(1 << 20, Stable::Unstable))),
    ("create-remove", Wanted::CreateRemove),
    ("readdirplus", Wanted::One("READDIRPLUS", Operation::Readdirplus)),
];

fn operations(text: &str) -> Result<Vec<Wanted>> {
    let find = |name: &str| {
        let known = OPERATIONS.iter().find(|(known, _)| *known == name.trim());
        known.map(|(_, wanted)| *wanted).with_context(|| {
            let names: Vec<&str> = OPERATIONS.iter().map(|(name, _)| *name).collect();
            format!("--operations: there is no `{name}`; there are {}", names.join(","))
        })
    };
    text.split(',').map(find).collect()
}

/// An operation with a number of connections and a depth.
struct Point<'a> {
    server: TargetServer<'a>,
    operation: Wanted,
    connections: u64,
    depth: u64,
    /// Points done before, which makes the names of directories unique.
    done: usize,
    /// The number of remaining points, including this one.
    left: u32,
}

impl Point<'_> {
    fn measure(&self, context: &mut Context<'_>) -> Result<()> {
        context.interrupt().check()?;
        let mut speaker = Speaker::to(self.server, context.directory())?;
        let slots = speaker.slots(self.connections, self.depth)?;
        if slots < self.depth {
            let depth = self.depth;
            context.note(format!("depth {depth} was left out: the server grants {slots} slots"));
            return Ok(());
        }
        let pages = Pages { created: String::new(), listed: vec![FixtureTree::SMALL.to_owned()] };
        match self.operation {
            Wanted::CreateRemove => self.create_and_remove(context, &mut speaker),
            Wanted::One(name, operation) => {
                let operation = self.stable(context, operation)?;
                let script = speaker.script(operation, &pages)?;
                let outcome = self.load(context, speaker.client()?, &script)?;
                self.keep(context, name, &outcome)
            }
        }
    }

    fn stable(&self, context: &Context<'_>, operation: Operation) -> Result<Operation> {
        Ok(match operation {
            Operation::Write(bytes, _) if context.parameters().flag("stable")? => {
                Operation::Write(bytes, Stable::FileSync)
            }
            other => other,
        })
    }

    /// Creates files for the given time, then removes them all.
    fn create_and_remove(&self, context: &mut Context<'_>, speaker: &mut Speaker) -> Result<()> {
        let created = format!("created-{}", self.done);
        context.target().files()?.make_directory(&context.path(&created))?;
        let pages = Pages { created: created.clone(), listed: Vec::new() };
        let creates = speaker.script(Operation::Create, &pages)?;
        let made = self.load(context, speaker.client()?, &creates)?;
        self.keep(context, "CREATE", &made)?;
        let removes = speaker.removes(&created)?;
        speaker.slots(self.connections, self.depth)?;
        // A new client counts its names from 0, as the client did that created the files.
        let load = Load { depth: self.depth as usize, stop: Stop::Calls(made.calls) };
        let removed = speaker.client()?.run(&removes, load)?;
        self.keep(context, "REMOVE", &removed)
    }

    fn load(
        &self,
        context: &Context<'_>,
        mut client: Client,
        script: &CallTemplates,
    ) -> Result<LoadOutcome> {
        let parameters = context.parameters();
        let wished = Duration::from_secs_f64(parameters.number("seconds")?);
        // If time is limited, half of it is for the load and the rest prepares it.
        let given = |left: Duration| (left / self.left / 2).max(LOAD_LEAST);
        let time = context.time_left().map_or(wished, |left| wished.min(given(left)));
        let (rate, depth) = (parameters.number("rate")?, self.depth as usize);
        if rate > 0.0 {
            let seed = context.seed();
            return client.run_open(script, OpenLoad { rate, time, depth, seed });
        }
        client.run(script, Load { depth, stop: Stop::After(time) })
    }

    fn keep(&self, context: &mut Context<'_>, name: &str, outcome: &LoadOutcome) -> Result<()> {
        ensure!(outcome.calls > 0, "{name}: no call was made: give more --seconds");
        let rate = context.parameters().number("rate")?;
        let at: [(&str, Place); 3] = [
            ("operation", name.into()),
            ("connections", self.connections.into()),
            ("depth", self.depth.into()),
        ];
        let throughput = outcome.calls as f64 / outcome.seconds;
        context.sample("throughput", &at, throughput, Unit::OperationsPerSecond);
        if rate > 0.0 && throughput < rate * REACHED {
            context
                .note(format!("{name}: {throughput:.0} calls a second, not the {rate} of --rate"));
        }
        let mut latency = Latency::of(name, &outcome.latency);
        latency.at = at.into_iter().skip(1).map(|(name, place)| (name.to_owned(), place)).collect();
        latency.from_due_time = rate > 0.0 && name != "REMOVE";
        context.latency(latency);
        Ok(())
    }
}

/// The longest load: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// The shortest load that gives a meaningful rate.
const LOAD_LEAST: Duration = Duration::from_millis(50);

/// The part of the rate that counts as reaching it, as gaps are random.
const REACHED: f64 = 0.95;

/// Makes the files for the calls of each version.
fn prepare(context: &Context<'_>) -> Result<()> {
    let mut files = context.target().files()?;
    for directory in [FixtureTree::SMALL, FixtureTree::DATA] {
        files.make_directory(&context.path(directory))?;
    }
    for number in 0..SMALL_FILES {
        context.interrupt().check()?;
        let path = format!("{}/{}", FixtureTree::SMALL, FixtureTree::file(number));
        write(files.as_mut(), &context.path(&path), 4096)?;
    }
    let written = (0..WRITTEN_FILES).map(FixtureTree::written_file);
    for name in std::iter::once(FixtureTree::read_file()).chain(written) {
        write(files.as_mut(), &context.path(&name), LARGE_BYTES)?;
    }
    Ok(())
}

fn write(files: &mut dyn Files, path: &str, bytes: u64) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    let file = files.create(path).with_context(|| format!("CREATE of {path}"))?;
    for offset in (0..bytes).step_by(PIECE as usize) {
        let data = fixture_tree::content(offset, PIECE.min(bytes - offset) as usize);
        let taken = files.write(file, offset, &data).with_context(|| format!("WRITE of {path}"))?;
        if taken != data.len() {
            bail!("WRITE of {path}: {taken} of {} bytes taken", data.len());
        }
    }
    Ok(files.close(file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_and_unknown_ones_are_named() {
        assert_eq!(operations("null, create-remove").unwrap().len(), 2);
        let error = operations("nul").unwrap_err().to_string();
        assert!(error.starts_with("--operations: there is no `nul`; there are null,"), "{error}");
        assert_eq!(operations(parameters::ALL[0].paper).unwrap().len(), OPERATIONS.len());
    }
}
