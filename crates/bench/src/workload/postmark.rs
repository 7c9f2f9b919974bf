use anyhow::{Result, ensure};

use crate::rng::Rng;
use crate::suite::{
    Access, Context, Driver, Figure, Kind, Parameter, Parameters, Preset, Tally, Unit, Workload,
};

mod parameters;

/// `PostMark` (Katcher 1997), the small files of a mail server, from its description.
pub(super) struct Postmark;

impl Workload for Postmark {
    fn name(&self) -> &'static str {
        "postmark"
    }

    fn about(&self) -> &'static str {
        "PostMark: 500 files of 500 B to 9.77 KB, 500 transactions; rates of each operation"
    }

    fn origin(&self) -> &'static str {
        "Katcher, NetApp 1997; used in 2003 for DisCFS with its defaults. A transaction reads a \
         whole file or appends to one, and creates or deletes one. Written anew from the \
         description, so the order of operations is not that of the original program with the same \
         seed. Rates count time spent in operations on files, as if drawing numbers took none."
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        Shape::of(parameters).map(drop)
    }

    fn history(&self) -> &'static [Figure] {
        &[]
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let shape = Shape::of(context.parameters())?;
        let mut driver = context.driver()?;
        play(context, &mut driver, shape)
    }
}

/// Runs all phases with one worker.
///
/// # Errors
/// The target fails an operation.
pub(super) fn play(context: &mut Context<'_>, driver: &mut Driver, shape: Shape) -> Result<()> {
    for number in 0..shape.directories {
        driver.make_directory(&context.path(&format!("s{number}")))?;
    }
    driver.take_tally();
    let mut pool = Pool::new(shape, context.rng(0));
    for _ in 0..pool.shape.files {
        let operation = pool.create();
        perform(context, driver, &pool.shape, &operation)?;
    }
    let created = driver.take_tally();
    let transactions = pool.shape.transactions;
    for number in 0..transactions {
        for operation in pool.transaction() {
            perform(context, driver, &pool.shape, &operation)?;
        }
        context.advance(number as f64 / transactions as f64);
    }
    let mixed = driver.take_tally();
    while let Some(operation) = pool.delete() {
        perform(context, driver, &pool.shape, &operation)?;
    }
    let deleted = driver.take_tally();
    report(context, &pool, (created, mixed, deleted));
    Ok(())
}

/// The values of the parameters.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    files: u64,
    size_least: u64,
    size_most: u64,
    transactions: u64,
    directories: u64,
    read_block: usize,
    write_block: usize,
    bias_read: u64,
    bias_create: u64,
}

impl Shape {
    /// The original sizes, with the given numbers of files and transactions.
    ///
    /// # Errors
    /// None for these values.
    pub(super) fn original(files: u64, transactions: u64) -> Result<Self> {
        let parameters = Parameters::preset(parameters::ALL, Preset::Paper);
        Ok(Self { files, transactions, ..Self::of(&parameters)? })
    }

    fn of(parameters: &Parameters) -> Result<Self> {
        let shape = Self {
            files: parameters.count("files")?,
            size_least: parameters.bytes("size-least")?,
            size_most: parameters.bytes("size-most")?,
            transactions: parameters.count("transactions")?,
            directories: parameters.count("subdirectories")?,
            read_block: parameters.bytes("read-block")? as usize,
            write_block: parameters.bytes("write-block")? as usize,
            bias_read: parameters.count("bias-read")?,
            bias_create: parameters.count("bias-create")?,
        };
        ensure!(shape.size_least <= shape.size_most, "--size-least is above --size-most");
        ensure!(
            shape.read_block > 0 && shape.write_block > 0,
            "--read-block, --write-block: not 0"
        );
        ensure!(shape.bias_read <= 10 && shape.bias_create <= 10, "--bias-...: from 0 to 10");
        Ok(shape)
    }
}

/// An operation of the mix. Sizes follow from the pool alone, never from the target.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    Create { file: u64, size: u64 },
    Read { file: u64, size: u64 },
    Append { file: u64, from: u64, bytes: u64 },
    Delete { file: u64 },
}

/// The existing files, and the random choice of the next operation.
struct Pool {
    shape: Shape,
    rng: Rng,
    /// Number and size of each file.
    files: Vec<(u64, u64)>,
    next: u64,
    counts: Counts,
}

/// Operations in transactions, by kind.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    created: u64,
    deleted: u64,
    read: u64,
    appended: u64,
}

impl Pool {
    fn new(shape: Shape, rng: Rng) -> Self {
        Self { shape, rng, files: Vec::new(), next: 0, counts: Counts::default() }
    }

    fn create(&mut self) -> Operation {
        let (least, most) = (self.shape.size_least, self.shape.size_most);
        let size = least + self.rng.below(most - least + 1);
        let file = self.next;
        self.next += 1;
        self.files.push((file, size));
        Operation::Create { file, size }
    }

    fn delete(&mut self) -> Option<Operation> {
        if self.files.is_empty() {
            return None;
        }
        let place = self.rng.below(self.files.len() as u64) as usize;
        let (file, _) = self.files.swap_remove(place);
        Some(Operation::Delete { file })
    }

    /// Reads or appends, then creates or deletes, each chosen by its bias. If there are no files,
    /// nothing is read, appended to or deleted.
    fn transaction(&mut self) -> Vec<Operation> {
        let mut operations = Vec::with_capacity(2);
        let reads = self.rng.below(10) < self.shape.bias_read;
        operations.extend(if reads { self.read() } else { self.append() });
        if self.rng.below(10) < self.shape.bias_create {
            self.counts.created += 1;
            operations.push(self.create());
        } else if let Some(operation) = self.delete() {
            self.counts.deleted += 1;
            operations.push(operation);
        }
        operations
    }

    fn read(&mut self) -> Option<Operation> {
        let place = self.rng.below(self.files.len() as u64) as usize;
        let (file, size) = *self.files.get(place)?;
        self.counts.read += 1;
        Some(Operation::Read { file, size })
    }

    /// Appends to a file, up to the greatest size; a file of that size is not changed.
    fn append(&mut self) -> Option<Operation> {
        let place = self.rng.below(self.files.len() as u64) as usize;
        let most = self.shape.size_most;
        let (file, size) = self.files.get_mut(place)?;
        let room = most.checked_sub(*size).filter(|room| *room > 0)?;
        let (from, bytes) = (*size, 1 + self.rng.below(room));
        *size += bytes;
        self.counts.appended += 1;
        Some(Operation::Append { file: *file, from, bytes })
    }
}

fn path(context: &Context<'_>, shape: &Shape, file: u64) -> String {
    match shape.directories {
        0 => context.path(&format!("p{file}")),
        count => context.path(&format!("s{}/p{file}", file % count)),
    }
}

fn perform(
    context: &Context<'_>,
    driver: &mut Driver,
    shape: &Shape,
    operation: &Operation,
) -> Result<()> {
    let name = |file: &u64| path(context, shape, *file);
    match operation {
        Operation::Create { file, size } => {
            let file = driver.create(&name(file))?;
            blocks(0, *size, shape.write_block, |at, length| driver.write(&file, at, length))?;
            driver.close(file)
        }
        Operation::Read { file, size } => {
            let file = driver.open(&name(file), Access::Read)?;
            blocks(0, *size, shape.read_block, |at, length| driver.read(&file, at, length))?;
            driver.close(file)
        }
        Operation::Append { file, from, bytes } => {
            let file = driver.open(&name(file), Access::Write)?;
            blocks(*from, *bytes, shape.write_block, |at, length| driver.write(&file, at, length))?;
            driver.close(file)
        }
        Operation::Delete { file } => driver.remove(&name(file)),
    }
}

/// Visits `bytes` bytes from byte `from` on, a block at a time.
fn blocks(
    from: u64,
    bytes: u64,
    block: usize,
    mut each: impl FnMut(u64, usize) -> Result<()>,
) -> Result<()> {
    (0..bytes).step_by(block).try_for_each(|at| {
        let length = (bytes - at).min(block as u64) as usize;
        each(from + at, length)
    })
}

fn report(
    context: &mut Context<'_>,
    pool: &Pool,
    (created, mixed, deleted): (Tally, Tally, Tally),
) {
    let Counts { created: more, deleted: fewer, read, appended } = pool.counts;
    let in_mix = mixed.spent.as_secs_f64();
    let all = in_mix + created.spent.as_secs_f64() + deleted.spent.as_secs_f64();
    let rates = [
        ("transactions", pool.shape.transactions, in_mix),
        ("create alone", pool.shape.files, created.spent.as_secs_f64()),
        ("create mixed", more, in_mix),
        ("read", read, in_mix),
        ("append", appended, in_mix),
        ("delete mixed", fewer, in_mix),
        ("delete alone", deleted.count(Kind::Remove), deleted.spent.as_secs_f64()),
    ];
    for (metric, count, seconds) in rates.into_iter().filter(|(_, count, _)| *count > 0) {
        context.sample(metric, &[], count as f64 / seconds, Unit::OperationsPerSecond);
    }
    let bytes = |tally: &Tally| (tally.bytes_read, tally.bytes_written);
    let (read, written) = [&created, &mixed, &deleted]
        .map(bytes)
        .into_iter()
        .fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    context.sample("data read", &[], read as f64 / all, Unit::BytesPerSecond);
    context.sample("data written", &[], written as f64 / all, Unit::BytesPerSecond);
    context.latencies(&mixed);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn pool(seed: u64) -> Pool {
        let parameters = Parameters::preset(parameters::ALL, Preset::Paper);
        Pool::new(Shape::of(&parameters).unwrap(), Rng::new(seed))
    }

    fn operations(seed: u64) -> Vec<Operation> {
        let mut pool = pool(seed);
        let mut all: Vec<_> = (0..500).map(|_| pool.create()).collect();
        (0..500).for_each(|_| all.extend(pool.transaction()));
        all.extend(std::iter::from_fn(|| pool.delete()));
        all
    }

    #[test]
    fn the_pool_is_what_the_operations_make_of_it() {
        let mut sizes = BTreeMap::new();
        let (mut appended, mut read) = (0, 0);
        for operation in operations(1) {
            match operation {
                Operation::Create { file, size } => {
                    assert!((500..=10_000).contains(&size), "{size}");
                    assert_eq!(sizes.insert(file, size), None);
                }
                Operation::Read { file, size } => {
                    assert_eq!(sizes[&file], size);
                    read += 1;
                }
                Operation::Append { file, from, bytes } => {
                    assert_eq!(sizes.insert(file, from + bytes), Some(from));
                    assert!(from + bytes <= 10_000);
                    appended += 1;
                }
                Operation::Delete { file } => assert!(sizes.remove(&file).is_some()),
            }
        }
        assert!(sizes.is_empty(), "files are left: {sizes:?}");
        // Each of the 500 transactions reads or appends with the same probability.
        assert!((200..300).contains(&read) && (200..300).contains(&appended), "{read} {appended}");
    }

    #[test]
    fn the_same_seed_gives_the_same_operations_and_another_does_not() {
        assert_eq!(operations(1), operations(1));
        assert_ne!(operations(1), operations(2));
    }

    #[test]
    fn an_empty_pool_is_no_trouble() {
        let mut pool = pool(1);
        pool.shape.bias_create = 0;
        pool.create();
        for _ in 0..100 {
            pool.transaction();
        }
        assert!(pool.files.is_empty());
        assert_eq!(pool.delete(), None);
    }
}
