use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use super::tool;
use super::tree::Tree;
use crate::suite::{Context, Needs, Parameter, Parameters, Unit, Workload};

mod copy;
mod parameters;

/// The build of a C program, as am-utils in the evaluation of range-mapping and cloaking (2002).
pub(super) struct Compile;

impl Workload for Compile {
    fn name(&self) -> &'static str {
        "compile"
    }

    fn about(&self) -> &'static str {
        "build a C source tree of 425 sources: configure-like probes, a library, ten programs; or \
         any command on any tree"
    }

    fn origin(&self) -> &'static str {
        "Spadavecchia and Zadok, USENIX 2002: the build of am-utils 6.0.7, 50,000 lines in 425 \
         files, 265 files created, several hundred configure tests. The sources are generated, of \
         the same number and size; the compiler is this machine's, and its own time is in the \
         figures. With --tree and --command a tree of yours is copied in and your command is run \
         there."
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    fn needs(&self) -> Needs {
        Needs::Directory
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        let is_given = |name| parameters.text(name).map(|text| !text.is_empty());
        ensure!(is_given("tree")? == is_given("command")?, "--tree and --command belong together");
        let (sources, programs) = (parameters.count("sources")?, parameters.count("programs")?);
        ensure!(sources > 0, "--sources: at least 1");
        ensure!((1..=sources).contains(&programs), "--programs: from 1 to --sources");
        Ok(())
    }

    fn check(&self, context: &Context<'_>) -> Result<()> {
        match context.parameters().text("tree")? {
            "" => tool::c_compiler().and(tool::archiver()).map(drop),
            tree => {
                ensure!(Path::new(tree).is_dir(), "--tree {tree} is no directory");
                Ok(())
            }
        }
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let target = context.target().directory().context("compile needs a directory")?;
        let place = target.join(context.directory());
        match context.parameters().text("command")? {
            "" => Build::of(context, place)?.perform(context),
            command => foreign(context, &place, command),
        }
    }
}

/// Copies a tree that the user has named and runs a command in it.
fn foreign(context: &mut Context<'_>, place: &Path, command: &str) -> Result<()> {
    let tree = PathBuf::from(context.parameters().text("tree")?);
    let copy = place.join("tree");
    let start = Instant::now();
    copy::tree(&tree, &copy, context.interrupt())?;
    context.sample("copy", &[], start.elapsed().as_secs_f64(), Unit::Seconds);
    context.reset_caches()?;
    let start = Instant::now();
    tool::run(Command::new("sh").args(["-c", command]).current_dir(&copy))
        .with_context(|| format!("--command `{command}`"))?;
    context.sample("command", &[], start.elapsed().as_secs_f64(), Unit::Seconds);
    Ok(())
}

/// A phase of a build.
type Phase = fn(&Build, &Context<'_>) -> Result<()>;

/// A build of the generated tree.
struct Build {
    place: PathBuf,
    compiler: PathBuf,
    tree: Tree,
    probes: u64,
    programs: u64,
    jobs: u64,
}

impl Build {
    fn of(context: &Context<'_>, place: PathBuf) -> Result<Self> {
        let parameters: &Parameters = context.parameters();
        let sources = parameters.count("sources")?;
        let tree = Tree {
            files: sources,
            directories: parameters.count("directories")?,
            file_bytes: parameters.bytes("source-size")?,
            seed: context.seed(),
            word: String::new(),
        };
        let programs = parameters.count("programs")?;
        Ok(Self {
            place,
            compiler: tool::c_compiler()?,
            tree,
            probes: parameters.count("probes")?,
            programs,
            jobs: parameters.count("jobs")?.max(1),
        })
    }

    fn perform(&self, context: &mut Context<'_>) -> Result<()> {
        self.unpack(context)?;
        context.reset_caches()?;
        let phases: [(&str, Phase); 3] =
            [("configure", Self::configure), ("compile", Self::compile), ("link", Self::link)];
        let mut total = 0.0;
        for (number, (metric, phase)) in phases.iter().enumerate() {
            let start = Instant::now();
            phase(self, context)?;
            let seconds = start.elapsed().as_secs_f64();
            context.sample(metric, &[], seconds, Unit::Seconds);
            context.advance((number + 1) as f64 / phases.len() as f64);
            total += seconds;
        }
        context.sample("build", &[], total, Unit::Seconds);
        self.verify()
    }

    /// Writes the sources.
    fn unpack(&self, context: &Context<'_>) -> Result<()> {
        for directory in 0..self.tree.directories.max(1) {
            make_directory(&self.place.join(self.tree.directory(directory)))?;
        }
        make_directory(&self.place.join("conftest"))?;
        for number in 0..self.tree.files {
            context.interrupt().check()?;
            write(&self.place.join(self.tree.path(number)), &self.tree.text(number))?;
        }
        for number in 0..self.programs {
            let (first, count) = self.share(number);
            let text = self.tree.program(first, count);
            write(&self.place.join(format!("p{number}.c")), &text)?;
        }
        Ok(())
    }

    /// Returns the first source of a program and the number of its sources.
    fn share(&self, program: u64) -> (u64, u64) {
        let count = self.tree.files / self.programs;
        (program * count, count)
    }

    /// Compiles small programs, as configure does: with headers that exist or not, and functions
    /// that link or not.
    fn configure(&self, context: &Context<'_>) -> Result<()> {
        let folder = self.place.join("conftest");
        for number in 0..self.probes {
            context.interrupt().check()?;
            let (source, links, expected) = probe(number);
            let (file, out) = (folder.join("conftest.c"), folder.join("conftest.out"));
            write(&file, &source)?;
            let mut command = Command::new(&self.compiler);
            command.args(if links { &[][..] } else { &["-c"] }).arg("-o").arg(&out).arg(&file);
            tool::probe(&mut command, expected)?;
            for made in [&file, &out].into_iter().filter(|made| made.exists()) {
                fs::remove_file(made).with_context(|| format!("remove {}", made.display()))?;
            }
        }
        Ok(())
    }

    /// Compiles every source, `jobs` at a time.
    fn compile(&self, context: &Context<'_>) -> Result<()> {
        let next = AtomicU64::new(0);
        let total = self.tree.files + self.programs;
        let work = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    return Ok(());
                }
                context.interrupt().check()?;
                let source = self.source(number);
                let object = source.with_extension("o");
                let mut command = Command::new(&self.compiler);
                tool::run(command.args(["-O", "-c", "-o"]).arg(object).arg(source))?;
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            let results = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(_) => bail!("a thread failed by a fault of this program"),
            });
            results.collect::<Vec<_>>().into_iter().collect()
        })
    }

    /// The path of a source; programs have the numbers after the sources.
    fn source(&self, number: u64) -> PathBuf {
        match number.checked_sub(self.tree.files) {
            Some(program) => self.place.join(format!("p{program}.c")),
            None => self.place.join(self.tree.path(number)),
        }
    }

    fn link(&self, _: &Context<'_>) -> Result<()> {
        let library = self.place.join("libtree.a");
        let objects = (0..self.tree.files).map(|number| self.source(number).with_extension("o"));
        tool::run(Command::new(tool::archiver()?).arg("rcs").arg(&library).args(objects))?;
        for number in 0..self.programs {
            let program = self.place.join(format!("p{number}"));
            let mut command = Command::new(&self.compiler);
            command.arg("-o").arg(&program).arg(program.with_extension("o")).arg(&library);
            tool::run(&mut command)?;
        }
        Ok(())
    }

    /// Checks the output of every program: no byte of any object was lost.
    fn verify(&self) -> Result<()> {
        for number in 0..self.programs {
            let (first, count) = self.share(number);
            let wanted = self.tree.printed(first, count);
            let printed = tool::run(&mut Command::new(self.place.join(format!("p{number}"))))?;
            ensure!(printed == wanted, "wrong data: p{number} printed {printed:?}, not {wanted:?}");
        }
        Ok(())
    }
}

/// A probe's source, whether it is linked too, and whether it must succeed.
fn probe(number: u64) -> (String, bool, bool) {
    const HEADERS: &[&str] = &["stdio.h", "stdlib.h", "string.h", "errno.h", "limits.h", "time.h"];
    const FUNCTIONS: &[&str] = &["printf", "malloc", "strlen", "memcpy", "qsort", "getenv"];
    let pick = |from: &[&'static str]| from[(number / 4) as usize % from.len()];
    match number % 4 {
        0 => (format!("#include <{}>\nint x{number};\n", pick(HEADERS)), false, true),
        1 => (format!("#include <comity-none-{number}.h>\n"), false, false),
        2 => (
            format!("char {0}();\nint main() {{ {0}(); return 0; }}\n", pick(FUNCTIONS)),
            true,
            true,
        ),
        _ => {
            let name = format!("comity_none_{number}");
            (format!("char {name}();\nint main() {{ {name}(); return 0; }}\n"), true, false)
        }
    }
}

fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("mkdir {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
