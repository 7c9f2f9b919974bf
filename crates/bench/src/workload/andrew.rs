use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::tool;
use super::tree::Tree;
use crate::suite::{Access, Context, Driver, Parameter, ParameterKind, Parameters, Unit, Workload};

/// The Andrew benchmark (Howard et al. 1988): five phases over a small source tree.
pub(super) struct Andrew;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "directories",
        about: "Directories made in the first phase",
        kind: ParameterKind::Count,
        paper: "21",
        quick: "21",
        modern: "210",
    },
    Parameter {
        name: "files",
        about: "Files copied in the second phase",
        kind: ParameterKind::Count,
        paper: "71",
        quick: "71",
        modern: "710",
    },
    Parameter {
        name: "file-size",
        about: "Bytes of a file in the mean",
        kind: ParameterKind::Bytes,
        paper: "3K",
        quick: "3K",
        modern: "12K",
    },
];

impl Workload for Andrew {
    fn name(&self) -> &'static str {
        "andrew"
    }

    fn about(&self) -> &'static str {
        "the five phases: 21 directories, 71 files copied, stat twice, read twice, compile"
    }

    fn origin(&self) -> &'static str {
        "Howard et al. 1988 (the Andrew benchmark); used in 1998 for the disk-caching client. The \
         sources are generated, 71 of about 200 KB together. The first four phases go through any \
         target; the fifth runs a C compiler and needs a directory."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        tree(parameters, 0).map(drop)
    }

    fn check(&self, context: &Context<'_>) -> Result<()> {
        match context.target().directory() {
            Some(_) => tool::c_compiler().map(drop),
            None => Ok(()),
        }
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let tree = tree(context.parameters(), context.seed())?;
        let mut driver = context.driver()?;
        let top = context.path("andrew");
        driver.untimed(|driver| fill(driver, &context.path("origin"), &tree))?;
        driver.make_directory(&top)?;
        for (number, phase) in PHASES.iter().enumerate() {
            driver.take_tally();
            (phase.work)(&mut driver, &tree, &context.path("origin"), &top)?;
            let seconds = driver.take_tally().spent.as_secs_f64();
            context.sample(phase.metric, &[], seconds, Unit::Seconds);
            context.advance((number + 1) as f64 / 5.0);
        }
        match context.target().directory() {
            Some(directory) => {
                let seconds = compile(&directory.join(&top), &tree, context)?;
                context.sample("compile", &[], seconds, Unit::Seconds);
            }
            None => context.note("the fifth phase, compile, needs a directory and was left out"),
        }
        Ok(())
    }
}

/// A phase that goes through [`Driver`].
pub(super) struct Phase {
    /// The name of its figure.
    pub(super) metric: &'static str,
    /// The work on the tree, from its origin, in the copy.
    pub(super) work: fn(&mut Driver, &Tree, &str, &str) -> Result<()>,
}

/// The first four phases.
pub(super) const PHASES: &[Phase] = &[
    Phase { metric: "mkdir", work: |driver, tree, _, top| make_directories(driver, tree, top) },
    Phase { metric: "copy", work: copy },
    Phase { metric: "stat", work: |driver, tree, _, top| stat_twice(driver, tree, top) },
    Phase { metric: "read", work: |driver, tree, _, top| read_twice(driver, tree, top) },
];

fn tree(parameters: &Parameters, seed: u64) -> Result<Tree> {
    let tree = Tree {
        files: parameters.count("files")?,
        directories: parameters.count("directories")?,
        file_bytes: parameters.bytes("file-size")?,
        seed,
        word: String::new(),
    };
    ensure!(tree.files > 0 && tree.directories > 0, "--files and --directories: at least 1");
    Ok(tree)
}

/// Makes the sources that are copied.
pub(super) fn fill(driver: &mut Driver, origin: &str, tree: &Tree) -> Result<()> {
    driver.make_directory(origin)?;
    for number in 0..tree.files {
        let file = driver.create(&format!("{origin}/m{number}.c"))?;
        driver.write_data(&file, 0, tree.text(number).as_bytes())?;
        driver.close(file)?;
    }
    Ok(())
}

fn make_directories(driver: &mut Driver, tree: &Tree, top: &str) -> Result<()> {
    (0..tree.directories)
        .try_for_each(|number| driver.make_directory(&format!("{top}/{}", tree.directory(number))))
}

fn copy(driver: &mut Driver, tree: &Tree, origin: &str, top: &str) -> Result<()> {
    for number in 0..tree.files {
        let text = tree.text(number);
        let from = driver.open(&format!("{origin}/m{number}.c"), Access::Read)?;
        driver.read_data(&from, 0, text.as_bytes())?;
        driver.close(from)?;
        let to = driver.create(&format!("{top}/{}", tree.path(number)))?;
        driver.write_data(&to, 0, text.as_bytes())?;
        driver.close(to)?;
    }
    Ok(())
}

fn stat_twice(driver: &mut Driver, tree: &Tree, top: &str) -> Result<()> {
    for _ in 0..2 {
        for number in 0..tree.directories {
            driver.list(&format!("{top}/{}", tree.directory(number)), false)?;
        }
        for number in 0..tree.files {
            let found = driver.lookup(&format!("{top}/{}", tree.path(number)))?.size;
            let wanted = tree.text(number).len() as u64;
            ensure!(found == wanted, "wrong data: source {number} has {found} bytes, not {wanted}");
        }
    }
    Ok(())
}

fn read_twice(driver: &mut Driver, tree: &Tree, top: &str) -> Result<()> {
    for _ in 0..2 {
        for number in 0..tree.files {
            let file = driver.open(&format!("{top}/{}", tree.path(number)), Access::Read)?;
            driver.read_data(&file, 0, tree.text(number).as_bytes())?;
            driver.close(file)?;
        }
    }
    Ok(())
}

/// Compiles and links the copy in place, and runs the program; returns the seconds.
pub(super) fn compile(top: &Path, tree: &Tree, context: &Context<'_>) -> Result<f64> {
    let compiler = tool::c_compiler()?;
    let main = top.join("main.c");
    let program = tree.program(0, tree.files);
    fs::write(&main, program).with_context(|| format!("write {}", main.display()))?;
    let start = std::time::Instant::now();
    let mut objects: Vec<PathBuf> = Vec::new();
    let sources = (0..tree.files).map(|number| top.join(tree.path(number)));
    for source in sources.chain([main]) {
        context.interrupt().check()?;
        let object = source.with_extension("o");
        tool::run(Command::new(&compiler).args(["-O", "-c", "-o"]).arg(&object).arg(&source))?;
        objects.push(object);
    }
    let program = top.join("program");
    tool::run(Command::new(&compiler).arg("-o").arg(&program).args(&objects))?;
    let seconds = start.elapsed().as_secs_f64();
    let (printed, wanted) = (tool::run(&mut Command::new(&program))?, tree.printed(0, tree.files));
    ensure!(printed == wanted, "wrong data: the program printed {printed:?}, not {wanted:?}");
    Ok(seconds)
}
