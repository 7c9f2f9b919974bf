use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::signals;
use crate::runner::now;
use crate::runner::{Chosen, Plan, Resets};
use crate::stdout::say;
use crate::suite::Version;
use crate::suite::{Interrupt, Parameter, ParameterKind, Parameters, Preset, Workload};
use crate::targets::{self, Spec};
use crate::{report, workload};

/// The name that stands for every workload.
const ALL: &str = "all";

/// The time limit of --quick for each target: ten minutes, less some room for the parts that cannot
/// be shortened.
const QUICK: Duration = Duration::from_secs(9 * 60);

/// The longest time limit: a month.
const MINUTES_MAX: f64 = 43_200.0;

/// A workload, or all of them, with their parameters, and the options of a run.
#[derive(Debug)]
pub struct Run {
    /// Names and parameters.
    chosen: Vec<(String, Parameters)>,
    options: Options,
}

/// Options of every run.
#[derive(Debug, Args)]
struct Options {
    /// The target to measure: a directory, nfs://host:port/export, peer:comity, peer:memory (comity
    /// with its files in memory), peer:keys (comity over TLS, its callers known by their keys),
    /// peer:ganesha (peer:NAME=DIR puts files in DIR), or idle: for the cost of the suite itself.
    /// `?vers=4.1` after a server selects this version of the protocol
    #[arg(value_name = "TARGET", required = true, value_parser = Spec::parse)]
    targets: Vec<Spec>,

    /// Sizes with which the whole suite takes ten minutes on a target, at most
    #[arg(long, group = "preset")]
    quick: bool,

    /// Sizes of the original works, which is the default
    #[arg(long, group = "preset")]
    paper: bool,

    /// Sizes for machines of today
    #[arg(long, group = "preset")]
    modern: bool,

    /// Number of times each target is measured [default: 5, or 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,

    /// Take about so many minutes at most: where that is too short there are fewer rounds, one at
    /// least, and shorter loads [default: with --quick 9 for each target]
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    limit_minutes: Option<Duration>,

    /// The seed: the same one gives the same operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The result directory [default: comity-bench-SECONDS, by the clock]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Go on with the result in --output; its measurements are not repeated
    #[arg(long, requires = "output")]
    resume: bool,

    /// Use targets that are not empty: the run works in a new folder there
    #[arg(long)]
    here: bool,

    /// Leave the files that were made
    #[arg(long)]
    keep: bool,

    /// Run this by sh before every round, with `COMITY_BENCH_WORKLOAD`, `COMITY_BENCH_TARGET` and
    /// `COMITY_BENCH_ROUND` in its environment; may be given more than once
    #[arg(long, value_name = "COMMAND")]
    before_run: Vec<String>,

    /// Empty caches with this command, where a workload wants them cold; may be given more than
    /// once
    #[arg(long, value_name = "COMMAND")]
    reset: Vec<String>,

    /// Have `comity bench agent` at this host and port empty the server's caches, too
    #[arg(long, value_name = "HOST:PORT", value_parser = agent)]
    agent: Vec<SocketAddr>,

    /// Count the calls of directories at the comity with this metrics page, which serves them and
    /// nobody else meanwhile [default: a kernel mount's own counts]
    #[arg(long, value_name = "ADDRESS:PORT")]
    calls_at: Option<SocketAddr>,

    /// Drop this machine's caches, too; takes root
    #[arg(long)]
    drop_caches: bool,

    /// Speak this version of NFS to servers whose names say nothing of it: 3 or 4.1
    #[arg(long, value_name = "VERSION", default_value_t, value_parser = Version::parse)]
    vers: Version,

    /// Call servers as this user [default: the user who runs the program]
    #[arg(long, value_name = "UID", requires = "gid")]
    uid: Option<u32>,

    /// Call servers as this group
    #[arg(long, value_name = "GID", requires = "uid")]
    gid: Option<u32>,

    /// The program that peer:comity starts [default: this one]
    #[arg(long, value_name = "PROGRAM", value_hint = clap::ValueHint::ExecutablePath)]
    comity: Option<PathBuf>,

    /// Say nothing on the way
    #[arg(long)]
    quiet: bool,
}

impl Args for Run {
    fn augment_args(command: Command) -> Command {
        let every = workload::all().into_iter().map(|workload| subcommand(workload.as_ref()));
        command.subcommand_required(true).subcommand(all()).subcommands(every)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Run {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let missing =
            || clap::Error::raw(ErrorKind::MissingSubcommand, "name a workload, or `all`");
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let options = Options::from_arg_matches(matches)?;
        ensure_once(&options.targets)?;
        let preset = options.preset();
        let chosen = match name {
            ALL => chosen_of_all(matches, preset)?,
            name => {
                let found = workload::all().into_iter().find(|workload| workload.name() == name);
                vec![given(found.ok_or_else(missing)?.as_ref(), preset, matches)?]
            }
        };
        Ok(Self { chosen, options })
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Refuses a target that is named twice, as both would share one place.
fn ensure_once(targets: &[Spec]) -> std::result::Result<(), clap::Error> {
    let twice = |(number, target): &(usize, &Spec)| {
        !matches!(target, Spec::Peer(..)) && targets[..*number].contains(target)
    };
    let Some((_, target)) = targets.iter().enumerate().find(twice) else { return Ok(()) };
    let text = format!("{} is named twice: name each place once", target.name());
    Err(clap::Error::raw(ErrorKind::InvalidValue, text))
}

fn all() -> Command {
    let name = |id, about| {
        let names = workload::all().into_iter().map(|workload| workload.name());
        let names: Vec<&str> = names.collect();
        Arg::new(id)
            .long(id)
            .value_name("WORKLOAD,...")
            .help(about)
            .value_delimiter(',')
            .value_parser(names)
    };
    // The options come first: with them comes what their type is about, which is not for users.
    Options::augment_args(Command::new(ALL))
        .about("Every workload, with the parameters of a preset")
        .long_about(None)
        .arg(name("only", "These workloads"))
        .arg(name("without", "All but these").conflicts_with("only"))
}

fn subcommand(workload: &dyn Workload) -> Command {
    let long = format!("{}.\n\n{}", workload.about(), workload.origin());
    let command = Options::augment_args(Command::new(workload.name()));
    let mut command = command.about(workload.about()).long_about(long);
    for parameter in workload.parameters() {
        command = command.arg(argument(parameter));
    }
    command
}

fn argument(parameter: &'static Parameter) -> Arg {
    let kind = parameter.kind;
    let value = match kind {
        ParameterKind::Count => "N",
        ParameterKind::Bytes => "BYTES",
        ParameterKind::Fraction => "FRACTION",
        ParameterKind::Number => "NUMBER",
        ParameterKind::Counts => "N,...",
        ParameterKind::Flag => "BOOL",
        ParameterKind::Text => "TEXT",
    };
    let argument = Arg::new(parameter.name)
        .long(parameter.name)
        .value_name(value)
        .help(help(parameter))
        .help_heading("Parameters")
        .value_parser(move |text: &str| kind.check(text).map(|()| text.to_owned()));
    match kind {
        ParameterKind::Flag => {
            argument.num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        _ => argument,
    }
}

/// Returns the description and the value in each preset; once if it is the same in all.
fn help(parameter: &Parameter) -> String {
    let Parameter { about, paper, quick, modern, .. } = *parameter;
    let [paper, quick, modern] = [paper, quick, modern].map(spaced);
    match (&*paper, &*quick, &*modern) {
        ("", "", "") => about.to_owned(),
        (paper, quick, modern) if paper == quick && paper == modern => {
            format!("{about} [default: {paper}]")
        }
        _ => format!("{about} [default: {paper}; --quick: {quick}; --modern: {modern}]"),
    }
}

/// Puts spaces into a long list, so that a page can break it.
fn spaced(values: &str) -> String {
    values.replace(',', ", ")
}

fn chosen_of_all(
    matches: &ArgMatches,
    preset: Preset,
) -> std::result::Result<Vec<(String, Parameters)>, clap::Error> {
    let names = |id| -> Vec<String> {
        matches.get_many::<String>(id).into_iter().flatten().cloned().collect()
    };
    let (only, without) = (names("only"), names("without"));
    let is_chosen = |name: &str| {
        let name = &name.to_owned();
        (only.is_empty() || only.contains(name)) && !without.contains(name)
    };
    let chosen: Vec<_> = workload::all()
        .into_iter()
        .filter(|workload| is_chosen(workload.name()))
        .map(|each| (each.name().to_owned(), Parameters::preset(each.parameters(), preset)))
        .collect();
    if chosen.is_empty() {
        return Err(clap::Error::raw(ErrorKind::InvalidValue, "--without leaves no workload"));
    }
    Ok(chosen)
}

/// The parameters of a preset, changed by the options that were given.
fn given(
    workload: &dyn Workload,
    preset: Preset,
    matches: &ArgMatches,
) -> std::result::Result<(String, Parameters), clap::Error> {
    let wrong = |error| clap::Error::raw(ErrorKind::InvalidValue, format!("{error:#}"));
    let mut parameters = Parameters::preset(workload.parameters(), preset);
    for parameter in workload.parameters() {
        if let Some(text) = matches.get_one::<String>(parameter.name) {
            parameters.set(parameter, text).map_err(wrong)?;
        }
    }
    workload.settings(&parameters).map_err(wrong)?;
    Ok((workload.name().to_owned(), parameters))
}

fn minutes(text: &str) -> Result<Duration> {
    let minutes: f64 = text.parse().with_context(|| format!("`{text}` is no number"))?;
    ensure!(minutes > 0.0 && minutes <= MINUTES_MAX, "from 0 to {MINUTES_MAX}");
    Ok(Duration::from_secs_f64(minutes * 60.0))
}

fn agent(text: &str) -> Result<SocketAddr> {
    ensure!(text.contains(':'), "`{text}` has no port: HOST:{}", crate::agent::PORT);
    let mut addresses = text.to_socket_addrs().map_err(|error| anyhow!("{text}: {error}"))?;
    addresses.next().with_context(|| format!("{text} has no address"))
}

impl Options {
    const fn preset(&self) -> Preset {
        match (self.quick, self.modern) {
            (true, _) => Preset::Quick,
            (_, true) => Preset::Modern,
            _ => Preset::Paper,
        }
    }

    fn limit(&self) -> Option<Duration> {
        let usual = self.quick.then(|| QUICK * self.targets.len() as u32);
        self.limit_minutes.or(usual)
    }
}

/// Measures, and prints where the result is.
pub(super) fn perform(run: &Run) -> Result<ExitCode> {
    enter_namespace(&run.options.targets)?;
    raise_descriptors();
    let plan = plan(run)?;
    let interrupt = Interrupt::default();
    signals::obey(&interrupt)?;
    let ended = crate::runner::run(&plan, &interrupt);
    let result = plan.output.join(crate::suite::RESULT_FILE);
    // The measurements so far are reported, no matter how the run ended.
    let page = result.exists().then(|| report::write(&plan.output, &workload::all()));
    ended?;
    say(&format!("{}\n", result.display()))?;
    if let Some(page) = page {
        say(&format!("{}\n", page?.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Raises the limit of open files as far as the system allows: some workloads open thousands, and
/// report it if they get fewer.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Starts this program again in a network namespace of its own, if a target needs one.
fn enter_namespace(targets: &[Spec]) -> Result<()> {
    let needs =
        |target: &&Spec| matches!(target, Spec::Peer(peer, ..) if targets::needs_namespace(*peer));
    let Some(peer) = targets.iter().find(needs) else {
        return if targets::is_inside_namespace() {
            targets::enter_namespace().map(drop)
        } else {
            Ok(())
        };
    };
    if let Some(server) = targets.iter().find(|target| matches!(target, Spec::Server(..))) {
        bail!(
            "{} runs in a network of its own, from where {} is not reached: measure them apart",
            peer.name(),
            server.name()
        );
    }
    let entered = targets::enter_namespace()?;
    ensure!(entered, "{} needs root and unshare: it gets a network of its own", peer.name());
    Ok(())
}

fn plan(run: &Run) -> Result<Plan> {
    let options = &run.options;
    let rounds = if options.quick { 3 } else { 5 };
    let find = |(name, parameters): &(String, Parameters)| {
        let found = workload::all().into_iter().find(|workload| workload.name() == name);
        let workload: Arc<dyn Workload> = found.context("a workload that is none")?;
        Ok(Chosen { workload, parameters: parameters.clone() })
    };
    let output = options.output.clone();
    Ok(Plan {
        chosen: run.chosen.iter().map(find).collect::<Result<_>>()?,
        targets: options.targets.clone(),
        options: targets::Options {
            who: options.uid.zip(options.gid),
            comity: options.comity.clone(),
            calls_at: options.calls_at,
            version: options.vers,
        },
        rounds: options.rounds.unwrap_or(rounds),
        limit: options.limit(),
        seed: options.seed,
        preset: options.preset(),
        here: options.here,
        keep: options.keep,
        resume: options.resume,
        output: output.unwrap_or_else(|| PathBuf::from(format!("comity-bench-{}", now()))),
        before_run: options.before_run.clone(),
        resets: Resets {
            commands: options.reset.clone(),
            agents: options.agent.clone(),
            drop_caches: options.drop_caches,
        },
        quiet: options.quiet,
    })
}
