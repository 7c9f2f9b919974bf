use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::andrew;
use super::tool;
use super::tree::Tree;
use crate::rng::Rng;
use crate::suite::{Access, Context, Driver, Parameters, Tally, Unit, Workload};

mod parameters;

/// The thirteen tests of the disk-caching client (Badros 1998).
pub(super) struct Badros;

impl Workload for Badros {
    fn name(&self) -> &'static str {
        "badros"
    }

    fn about(&self) -> &'static str {
        "the thirteen tests of 1998: andrew's five, untar, ls, large reads and copies, random \
         reads, small appends; once and with 4 copies in parallel"
    }

    fn origin(&self) -> &'static str {
        "Badros, University of Washington 1998: andrew's five phases, untar of 4.3 MB in 400 \
         files, ls of 500 files four times, read of 6.1 MB, read of it again, copy of another 6.1 \
         MB, 1,000 random reads of 1 to 2,663 bytes in 4.3 MB, 2,000 small appends, and 1,000 \
         times an append and a read of the whole file. Caches are not emptied in between; some 8 \
         MB of other data are read between the tests. Untar writes what an archive would hold. The \
         calls of each test are counted where the target can count them. The \
         thesis does not say how long an append is. With several copies the figure is the time of \
         the slowest."
    }

    fn parameters(&self) -> &'static [crate::suite::Parameter] {
        parameters::ALL
    }

    fn check(&self, context: &Context<'_>) -> Result<()> {
        match context.target().directory() {
            Some(_) => tool::c_compiler().map(drop),
            None => Ok(()),
        }
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        ensure!(!parameters.counts("copies")?.contains(&0), "--copies: at least 1");
        Shape::of(parameters, 0).map(drop)
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let shape = Shape::of(context.parameters(), context.seed())?;
        let all_copies = context.parameters().counts("copies")?;
        for (number, copies) in all_copies.iter().enumerate() {
            let parts = (number as f64, all_copies.len() as f64);
            run_copies(context, &shape, *copies, parts)?;
        }
        if context.target().directory().is_none() {
            context.note("the fifth test, compile, needs a directory and was left out");
        }
        Ok(())
    }
}

/// The values of the parameters.
struct Shape {
    andrew: Tree,
    untar: Tree,
    ls_files: u64,
    read_bytes: u64,
    random_reads: u64,
    random_most: u64,
    random_file: u64,
    appends: u64,
    append_bytes: u64,
    rereads: u64,
    block: usize,
    unrelated: u64,
}

impl Shape {
    fn of(parameters: &Parameters, seed: u64) -> Result<Self> {
        let tree = |files: u64, directories, bytes: u64| Tree {
            files,
            directories,
            file_bytes: bytes / files.max(1),
            seed,
            word: String::new(),
        };
        let shape = Self {
            andrew: tree(71, 21, 71 * 3072),
            untar: tree(parameters.count("untar-files")?, 20, parameters.bytes("untar-size")?),
            ls_files: parameters.count("ls-files")?,
            read_bytes: parameters.bytes("read-size")?,
            random_reads: parameters.count("random-reads")?,
            random_most: parameters.bytes("random-read-most")?,
            random_file: parameters.bytes("random-file")?,
            appends: parameters.count("appends")?,
            append_bytes: parameters.bytes("append-size")?,
            rereads: parameters.count("rereads")?,
            block: parameters.bytes("block-size")? as usize,
            unrelated: parameters.bytes("unrelated")?,
        };
        ensure!(shape.untar.files > 0, "--untar-files: at least 1");
        ensure!(shape.block > 0 && shape.append_bytes > 0, "--block-size, --append-size: not 0");
        let fits = (1..=shape.random_file).contains(&shape.random_most);
        ensure!(fits, "--random-read-most: from 1 to --random-file");
        Ok(shape)
    }
}

/// One of the copies of the tests that run at the same time.
struct Copy<'a> {
    shape: &'a Shape,
    driver: &'a mut Driver,
    /// The directory of the copy.
    top: &'a str,
    rng: Rng,
}

/// A test: the name of its figure, and its work.
type Test = (&'static str, fn(&mut Copy<'_>) -> Result<()>);

/// All tests but `compile`, which does not work through a driver.
const TESTS: &[Test] = &[
    ("1 mkdir", |copy| copy.andrew(0)),
    ("2 copy", |copy| copy.andrew(1)),
    ("3 stat", |copy| copy.andrew(2)),
    ("4 read", |copy| copy.andrew(3)),
    ("6 untar", |copy| copy.untar()),
    ("7 ls", |copy| copy.ls()),
    ("8 read", |copy| copy.read_large()),
    ("9 read again", |copy| copy.read_large()),
    ("10 copy large", |copy| copy.copy_large()),
    ("11 random reads", |copy| copy.random_reads()),
    ("12 appends", |copy| copy.appends()),
    ("13 append and reread", |copy| copy.append_and_reread()),
];

fn run_copies(
    context: &mut Context<'_>,
    shape: &Shape,
    copies: u64,
    (done, of): (f64, f64),
) -> Result<()> {
    ensure!(copies > 0, "--copies: at least 1");
    let tops: Vec<String> =
        (0..copies).map(|copy| context.path(&format!("x{copies}-{copy}"))).collect();
    let mut drivers: Vec<Driver> = tops.iter().map(|_| context.driver()).collect::<Result<_>>()?;
    for (driver, top) in drivers.iter_mut().zip(&tops) {
        prepare(driver, shape, top)?;
    }
    let at = [("copies", copies.into())];
    for (number, (metric, test)) in TESTS.iter().enumerate() {
        if *metric == "6 untar" {
            context.counting_calls("5 compile", &at, |context| compile(context, shape, &tops))?;
        }
        let tally = context.counting_calls(metric, &at, |context| {
            together(context, &mut drivers, &tops, shape, *test)
        })?;
        context.sample(metric, &at, tally.spent.as_secs_f64(), Unit::Seconds);
        together(context, &mut drivers, &tops, shape, |copy| copy.unrelated())?;
        context.advance((done + (number + 1) as f64 / TESTS.len() as f64) / of);
    }
    Ok(())
}

/// Runs one test in all copies at the same time.
fn together(
    context: &Context<'_>,
    drivers: &mut [Driver],
    tops: &[String],
    shape: &Shape,
    test: fn(&mut Copy<'_>) -> Result<()>,
) -> Result<Tally> {
    drivers.iter_mut().for_each(|driver| drop(driver.take_tally()));
    context.parallel(drivers, |number, driver| {
        let rng = context.rng(number as u64);
        test(&mut Copy { shape, driver, top: &tops[number], rng })
    })
}

/// Runs the fifth test, if there is a directory to compile in.
fn compile(context: &mut Context<'_>, shape: &Shape, tops: &[String]) -> Result<()> {
    let Some(directory) = context.target().directory() else { return Ok(()) };
    let longest = Mutex::new(Duration::ZERO);
    let one = |top: &String| -> Result<()> {
        let place = directory.join(format!("{top}/andrew"));
        let seconds = andrew::compile(&place, &shape.andrew, context)?;
        let mut longest = longest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *longest = longest.max(Duration::from_secs_f64(seconds));
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = tops.iter().map(|top| scope.spawn(|| one(top))).collect();
        let ended: Vec<_> = threads.into_iter().map(crate::suite::joined).collect();
        ended.into_iter().collect::<Result<()>>()
    })?;
    let seconds = longest.into_inner().unwrap_or_default().as_secs_f64();
    let at = [("copies", (tops.len() as u64).into())];
    context.sample("5 compile", &at, seconds, Unit::Seconds);
    Ok(())
}

/// Makes the files that the tests use.
fn prepare(driver: &mut Driver, shape: &Shape, top: &str) -> Result<()> {
    driver.make_directory(top)?;
    driver.make_directory(&format!("{top}/andrew"))?;
    driver.make_directory(&format!("{top}/ls"))?;
    andrew::fill(driver, &format!("{top}/origin"), &shape.andrew)?;
    for number in 0..shape.ls_files {
        let file = driver.create(&format!("{top}/ls/f{number:04}"))?;
        driver.close(file)?;
    }
    let files = [
        ("large", shape.read_bytes),
        ("other", shape.read_bytes),
        ("random", shape.random_file),
        ("unrelated", shape.unrelated),
        ("appended", 0),
        ("reread", 0),
    ];
    for (name, bytes) in files {
        let file = driver.create(&format!("{top}/{name}"))?;
        driver.write(&file, 0, bytes as usize)?;
        driver.close(file)?;
    }
    Ok(())
}

impl Copy<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.top)
    }

    fn andrew(&mut self, phase: usize) -> Result<()> {
        let (origin, top) = (self.path("origin"), self.path("andrew"));
        (andrew::PHASES[phase].work)(self.driver, &self.shape.andrew, &origin, &top)
    }

    fn untar(&mut self) -> Result<()> {
        let tree = &self.shape.untar;
        let top = self.path("untar");
        self.driver.make_directory(&top)?;
        for number in 0..tree.directories {
            self.driver.make_directory(&format!("{top}/{}", tree.directory(number)))?;
        }
        for number in 0..tree.files {
            let file = self.driver.create(&format!("{top}/{}", tree.path(number)))?;
            self.driver.write_data(&file, 0, tree.text(number).as_bytes())?;
            self.driver.close(file)?;
        }
        Ok(())
    }

    fn ls(&mut self) -> Result<()> {
        for _ in 0..4 {
            let found = self.driver.list(&self.path("ls"), true)?.len() as u64;
            let wanted = self.shape.ls_files;
            ensure!(found == wanted, "wrong data: a listing has {found} entries, not {wanted}");
        }
        Ok(())
    }

    fn read_large(&mut self) -> Result<()> {
        self.read_all("large", self.shape.read_bytes)
    }

    fn unrelated(&mut self) -> Result<()> {
        self.read_all("unrelated", self.shape.unrelated)
    }

    fn read_all(&mut self, name: &str, bytes: u64) -> Result<()> {
        let file = self.driver.open(&self.path(name), Access::Read)?;
        for at in (0..bytes).step_by(self.shape.block) {
            let length = (bytes - at).min(self.shape.block as u64) as usize;
            self.driver.read(&file, at, length)?;
        }
        self.driver.close(file)
    }

    fn copy_large(&mut self) -> Result<()> {
        let from = self.driver.open(&self.path("other"), Access::Read)?;
        let to = self.driver.create(&self.path("copy"))?;
        let bytes = self.shape.read_bytes;
        for at in (0..bytes).step_by(self.shape.block) {
            let length = (bytes - at).min(self.shape.block as u64) as usize;
            self.driver.read(&from, at, length)?;
            self.driver.write(&to, at, length)?;
        }
        self.driver.close(from)?;
        self.driver.close(to)
    }

    fn random_reads(&mut self) -> Result<()> {
        let file = self.driver.open(&self.path("random"), Access::Read)?;
        for _ in 0..self.shape.random_reads {
            let length = 1 + self.rng.below(self.shape.random_most);
            let at = self.rng.below(self.shape.random_file - length + 1);
            self.driver.read(&file, at, length as usize)?;
        }
        self.driver.close(file)
    }

    fn appends(&mut self) -> Result<()> {
        let file = self.driver.open(&self.path("appended"), Access::Write)?;
        for number in 0..self.shape.appends {
            let bytes = self.shape.append_bytes;
            self.driver.write(&file, number * bytes, bytes as usize)?;
        }
        self.driver.close(file)
    }

    fn append_and_reread(&mut self) -> Result<()> {
        let bytes = self.shape.append_bytes;
        for number in 0..self.shape.rereads {
            let file = self.driver.open(&self.path("reread"), Access::Write)?;
            self.driver.write(&file, number * bytes, bytes as usize)?;
            self.driver.close(file)?;
            self.read_all("reread", (number + 1) * bytes)?;
        }
        Ok(())
    }
}
