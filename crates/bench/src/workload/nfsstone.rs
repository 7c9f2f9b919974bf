use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};

use crate::rng::Rng;
use crate::suite::{
    Access, Context, Driver, Figure, OpenFile, Parameter, ParameterKind, Parameters, Tally, Unit,
    Workload,
};

/// NFSSTONE (Shein, Callahan and Woodbury 1989), from its description: a fixed mix of operations on
/// a tree of files, done as fast as possible.
pub(super) struct Nfsstone;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "operations",
        about: "Operations; the mix is exact to one operation",
        kind: ParameterKind::Count,
        paper: "45522",
        quick: "45522",
        modern: "455220",
    },
    Parameter {
        name: "directories",
        about: "Directories of the tree",
        kind: ParameterKind::Count,
        paper: "20",
        quick: "20",
        modern: "200",
    },
    Parameter {
        name: "files",
        about: "Files in each directory, and as many symbolic links",
        kind: ParameterKind::Count,
        paper: "50",
        quick: "50",
        modern: "100",
    },
    Parameter {
        name: "file-size",
        about: "Bytes of each file",
        kind: ParameterKind::Bytes,
        paper: "16K",
        quick: "16K",
        modern: "64K",
    },
    Parameter {
        name: "block-size",
        about: "Bytes of a READ or WRITE",
        kind: ParameterKind::Bytes,
        paper: "8K",
        quick: "8K",
        modern: "64K",
    },
    Parameter {
        name: "workers",
        about: "Workers at the same time; they share the operations",
        kind: ParameterKind::Count,
        paper: "1",
        quick: "1",
        modern: "16",
    },
];

/// An operation of the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Lookup,
    Read,
    Readlink,
    Write,
    Getattr,
    Create,
}

/// The mix in tenths of a percent. It adds up to 994: the rest, which the paper leaves open, is
/// given to the others in proportion.
const MIX: &[(Operation, u64)] = &[
    (Operation::Lookup, 530),
    (Operation::Read, 320),
    (Operation::Readlink, 75),
    (Operation::Write, 32),
    (Operation::Getattr, 23),
    (Operation::Create, 14),
];

impl Workload for Nfsstone {
    fn name(&self) -> &'static str {
        "nfsstone"
    }

    fn about(&self) -> &'static str {
        "NFSSTONE: 45,522 operations, 53 % LOOKUP, 32 % READ, 7.5 % READLINK, 3.2 % WRITE, 2.3 % \
         GETATTR, 1.4 % CREATE"
    }

    fn origin(&self) -> &'static str {
        "Shein, Callahan and Woodbury, USENIX 1989; used in 2002 for range-mapping and cloaking. \
         Written anew from the description: the mix and the number of operations are the \
         original's, the size of the tree was a matter of compile-time constants and is ours. The \
         percentages add up to 99.4; the rest is shared out in proportion. Files are opened before \
         the mix begins, as NFS knows no open; of more than 1,000 those used last are, and opening \
         the others is in no figure."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        Shape::of(parameters).map(drop)
    }

    fn history(&self) -> &'static [Figure] {
        &[]
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let shape = Shape::of(context.parameters())?;
        let mut first = context.driver()?;
        shape.prepare(context, &mut first)?;
        let mut workers = vec![first];
        while workers.len() < shape.workers as usize {
            workers.push(context.driver()?);
        }
        let tally = shape.perform(context, &mut workers)?;
        let seconds = tally.spent.as_secs_f64();
        let rate = shape.operations as f64 / seconds;
        context.sample("throughput", &[], rate, Unit::OperationsPerSecond);
        context.latencies(&tally);
        Ok(())
    }
}

/// The values of the parameters.
struct Shape {
    operations: u64,
    directories: u64,
    files: u64,
    file_bytes: u64,
    block_bytes: u64,
    workers: u64,
}

/// Most files that all workers together have open: systems let a program have 1,024.
const OPEN_FILES_MAX: u64 = 1000;

/// A worker's view of the tree. It keeps the files open that it opened last: all of them if the
/// tree is small.
struct Tree {
    members: Vec<Member>,
    open: HashMap<u64, OpenFile>,
    /// Numbers of the open files, the oldest first.
    order: VecDeque<u64>,
    open_most: u64,
}

/// A file of the tree, with its names prepared.
struct Member {
    path: String,
    link: String,
    said: String,
}

impl Tree {
    /// Returns an open file of the tree. The time of opening it is in no figure.
    fn opened(&mut self, driver: &mut Driver, number: u64) -> Result<OpenFile> {
        if let Some(file) = self.open.get(&number) {
            return Ok(file.clone());
        }
        let oldest = match self.open.len() as u64 >= self.open_most {
            true => self.order.pop_front().and_then(|number| self.open.remove(&number)),
            false => None,
        };
        let path = &self.members[number as usize].path;
        let file = driver.untimed(|driver| {
            oldest.map_or(Ok(()), |file| driver.close(file))?;
            driver.open(path, Access::Write)
        })?;
        self.open.insert(number, file.clone());
        self.order.push_back(number);
        Ok(file)
    }
}

impl Shape {
    fn of(parameters: &Parameters) -> Result<Self> {
        let shape = Self {
            operations: parameters.count("operations")?,
            directories: parameters.count("directories")?,
            files: parameters.count("files")?,
            file_bytes: parameters.bytes("file-size")?,
            block_bytes: parameters.bytes("block-size")?,
            workers: parameters.count("workers")?,
        };
        ensure!(shape.directories > 0 && shape.files > 0, "--directories and --files: at least 1");
        ensure!(
            shape.workers > 0 && shape.operations > 0,
            "--workers and --operations: at least 1"
        );
        let fits = (1..=shape.file_bytes).contains(&shape.block_bytes);
        ensure!(fits, "--block-size: from 1 to --file-size");
        Ok(shape)
    }

    fn file(&self, context: &Context<'_>, number: u64) -> String {
        context.path(&format!("d{}/f{}", number / self.files, number % self.files))
    }

    fn link(&self, context: &Context<'_>, number: u64) -> String {
        context.path(&format!("d{}/l{}", number / self.files, number % self.files))
    }

    fn prepare(&self, context: &Context<'_>, driver: &mut Driver) -> Result<()> {
        for directory in 0..self.directories {
            driver.make_directory(&context.path(&format!("d{directory}")))?;
        }
        for number in 0..self.directories * self.files {
            let file = driver.create(&self.file(context, number))?;
            driver.write(&file, 0, self.file_bytes as usize)?;
            driver.close(file)?;
            driver.make_link(&self.link(context, number), &link_text(number))?;
        }
        driver.take_tally();
        Ok(())
    }

    fn perform(&self, context: &Context<'_>, workers: &mut [Driver]) -> Result<Tally> {
        let mut trees = Vec::new();
        for driver in workers.iter_mut() {
            trees.push(Mutex::new(self.tree(context, driver)?));
            driver.take_tally();
        }
        let mix = mix(self.operations, &mut context.rng(0));
        let count = workers.len();
        let tally = context.parallel(workers, |number, driver| {
            let mine = mix.iter().skip(number).step_by(count);
            let mut tree = trees[number].lock().unwrap_or_else(PoisonError::into_inner);
            self.work(context, driver, (number as u64, &mut tree), mine)
        })?;
        for (driver, tree) in workers.iter_mut().zip(trees) {
            let tree = tree.into_inner().unwrap_or_else(PoisonError::into_inner);
            tree.open.into_values().try_for_each(|file| driver.close(file))?;
        }
        Ok(tally)
    }

    fn tree(&self, context: &Context<'_>, driver: &mut Driver) -> Result<Tree> {
        let member = |number| Member {
            path: self.file(context, number),
            link: self.link(context, number),
            said: link_text(number),
        };
        let total = self.directories * self.files;
        let open_most = (OPEN_FILES_MAX / self.workers).max(1);
        let (open, order) = (HashMap::new(), VecDeque::new());
        let members = (0..total).map(member).collect();
        let mut tree = Tree { members, open, order, open_most };
        (0..total.min(open_most)).try_for_each(|number| tree.opened(driver, number).map(drop))?;
        Ok(tree)
    }

    fn work<'a>(
        &self,
        context: &Context<'_>,
        driver: &mut Driver,
        (worker, tree): (u64, &mut Tree),
        mix: impl Iterator<Item = &'a Operation>,
    ) -> Result<()> {
        let mut rng = context.rng(worker + 1);
        let (blocks, block) = (self.file_bytes / self.block_bytes, self.block_bytes as usize);
        for (step, operation) in mix.enumerate() {
            let number = rng.below(tree.members.len() as u64);
            let Member { path, link, said } = &tree.members[number as usize];
            let offset = rng.below(blocks) * self.block_bytes;
            match operation {
                Operation::Lookup => driver.lookup(path).map(drop)?,
                Operation::Read => {
                    let file = tree.opened(driver, number)?;
                    driver.read(&file, offset, block)?;
                }
                Operation::Write => {
                    let file = tree.opened(driver, number)?;
                    driver.write(&file, offset, block)?;
                }
                Operation::Getattr => {
                    let file = tree.opened(driver, number)?;
                    driver.attributes(&file).map(drop)?;
                }
                Operation::Readlink => driver.read_link(link, said)?,
                Operation::Create => {
                    let directory = number / self.files;
                    let new = context.path(&format!("d{directory}/n{worker}.{step}"));
                    let file = driver.create(&new)?;
                    driver.untimed(|driver| driver.close(file))?;
                }
            }
            if step % 1024 == 0 {
                context.advance(step as f64 * self.workers as f64 / self.operations as f64);
            }
        }
        Ok(())
    }
}

fn link_text(number: u64) -> String {
    format!("f{number}-a-name-that-a-link-might-say")
}

/// Returns this many operations in the proportions of the mix, exact to one operation (largest
/// remainders), in random order.
pub(super) fn mix(operations: u64, rng: &mut Rng) -> Vec<Operation> {
    let sum: u64 = MIX.iter().map(|(_, share)| share).sum();
    let mut counts: Vec<u64> = MIX.iter().map(|(_, share)| operations * share / sum).collect();
    let mut by_remainder: Vec<usize> = (0..MIX.len()).collect();
    by_remainder.sort_by_key(|place| std::cmp::Reverse(operations * MIX[*place].1 % sum));
    let missing = operations - counts.iter().sum::<u64>();
    by_remainder.iter().take(missing as usize).for_each(|place| counts[*place] += 1);
    let repeated = MIX.iter().zip(counts).map(|((operation, _), count)| (*operation, count));
    let mut mix: Vec<Operation> = repeated
        .flat_map(|(operation, count)| std::iter::repeat_n(operation, count as usize))
        .collect();
    rng.shuffle(&mut mix);
    mix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(operations: u64) -> Vec<usize> {
        let mix = mix(operations, &mut Rng::new(1));
        MIX.iter().map(|(each, _)| mix.iter().filter(|one| *one == each).count()).collect()
    }

    #[test]
    fn the_mix_of_45522_operations_is_exact() {
        let counts = counts(45_522);
        assert_eq!(counts.iter().sum::<usize>(), 45_522);
        // The original's percentages of 99.4 %.
        for ((operation, share), count) in MIX.iter().zip(&counts) {
            let exact = 45_522.0 * *share as f64 / 994.0;
            assert!((*count as f64 - exact).abs() < 1.0, "{operation:?}: {count}, {exact}");
        }
        assert_eq!(counts, [24_272, 14_655, 3_435, 1_466, 1_053, 641]);
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_does_not() {
        let order = |seed| mix(1000, &mut Rng::new(seed));
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_eq!(counts(7).iter().sum::<usize>(), 7);
    }
}
