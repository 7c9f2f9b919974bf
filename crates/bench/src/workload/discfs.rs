use anyhow::{Result, ensure};

use self::contenders::Contenders;
use super::grep::{fill, search};
use super::postmark::{self, Shape};
use super::tree::Tree;
use crate::suite::{Context, Driver, Figure, Needs, Parameter, Parameters, Unit, Workload};

mod bonnie;
mod build;
mod chains;
mod contenders;
mod decisions;
mod parameters;

/// The evaluation of `DisCFS` (2003): the cost of callers that act by credentials.
pub(super) struct Discfs;

/// Runs a part of the evaluation.
type RunPart = fn(&mut Context<'_>) -> Result<()>;

/// The parts by their names, in the order in which they are run.
const PARTS: [(&str, RunPart); 6] = [
    ("postmark", postmark),
    ("grep", grep),
    ("build", build::run),
    ("bonnie", bonnie::run),
    ("decisions", decisions::run),
    ("chains", chains::run),
];

impl Workload for Discfs {
    fn name(&self) -> &'static str {
        "discfs"
    }

    fn about(&self) -> &'static str {
        "PostMark, search, build, Bonnie by a key's account (NK) and by grants (COLD, WARM); cache \
         sizes, chains"
    }

    fn origin(&self) -> &'static str {
        "Miltchev et al., USENIX 2003: DisCFS without queries (NK), just started (COLD) and with \
         decisions kept (WARM). Here NK is a worker under the key of the account, and COLD one \
         under a new key with a chain of three grants; both come by TLS and take turns. WARM is \
         the second run of the worker by grants, to be compared with the second of NK. The build \
         is its work on files alone, without a compiler."
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    fn needs(&self) -> Needs {
        Needs::Keys
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        chosen(parameters)?;
        let least = |name: &str| Ok::<_, anyhow::Error>(parameters.counts(name)?.into_iter().min());
        ensure!(least("decisions")? >= Some(1), "--decisions: each at least 1");
        ensure!(least("chains")? >= Some(1), "--chains: each at least 1");
        let longest = parameters.counts("chains")?.into_iter().max();
        ensure!(longest <= Some(64), "--chains: each at most 64, as a submission has");
        Ok(())
    }

    fn history(&self) -> &'static [Figure] {
        HISTORY
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let parts = chosen(context.parameters())?;
        let count = parts.len();
        for (number, part) in parts.into_iter().enumerate() {
            part(context)?;
            context.advance((number + 1) as f64 / count as f64);
        }
        Ok(())
    }
}

const HISTORY: &[Figure] = &[Figure {
    metric: "grep time",
    at: &[("rights", "NK"), ("run", "1")],
    value: 31.83,
    unit: Unit::Seconds,
    system: "OpenBSD 2.8, NFSv3 over 100 Mb/s Ethernet",
    source: "Miltchev et al. 2003, search of 5,236 files",
}];

/// The parts that a user has named.
fn chosen(parameters: &Parameters) -> Result<Vec<RunPart>> {
    let named: Vec<&str> = parameters.text("parts")?.split(',').map(str::trim).collect();
    let known = PARTS.map(|(name, _)| name);
    let unknown = named.iter().find(|name| !known.contains(name));
    ensure!(unknown.is_none(), "--parts: from {}", known.join(","));
    Ok(PARTS.into_iter().filter(|(name, _)| named.contains(name)).map(|(_, part)| part).collect())
}

fn postmark(context: &mut Context<'_>) -> Result<()> {
    let parameters = context.parameters();
    let (files, transactions) =
        (parameters.count("postmark-files")?, parameters.count("transactions")?);
    let mut contenders = Contenders::begin(context)?;
    contenders.take_turns(context, "postmark", |context, driver| {
        postmark::play(context, driver, Shape::original(files, transactions)?)
    })
}

fn grep(context: &mut Context<'_>) -> Result<()> {
    let files = context.parameters().count("grep-files")?;
    let tree = tree(context, files, "splnet");
    let place = context.path("tree");
    let mut contenders = Contenders::begin(context)?;
    let home = std::mem::replace(&mut context.directory, place);
    let searched = contenders.on_tree(context, "grep", &tree, |context, driver| {
        let found = search(context, driver, &tree)?;
        ensure!(found == tree.with_word(), "wrong data: {found} files match");
        time(context, driver);
        Ok(())
    });
    context.directory = home;
    searched
}

/// A tree of sources of 12 KiB, 21 in a directory, as in the evaluation of 2003.
fn tree(context: &Context<'_>, files: u64, word: &str) -> Tree {
    let directories = (files / 21).max(1);
    Tree { files, directories, file_bytes: 12 << 10, seed: context.seed(), word: word.to_owned() }
}

/// Stores the time that a driver has spent in operations since the last call.
fn time(context: &mut Context<'_>, driver: &mut Driver) {
    let seconds = driver.take_tally().spent.as_secs_f64();
    context.sample("time", &[], seconds, Unit::Seconds);
}

/// Makes a tree in the directory of the context.
fn plant(context: &Context<'_>, driver: &mut Driver, tree: &Tree) -> Result<()> {
    driver.make_directory(context.directory())?;
    fill(context, driver, tree)
}
