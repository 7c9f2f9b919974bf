use anyhow::{Result, ensure};

use super::tree::Tree;
use crate::suite::{
    Access, Context, Driver, Figure, Parameter, ParameterKind, Parameters, Unit, Workload,
};

/// A search through a source tree, of the evaluation of DisCFS (2003).
pub(super) struct Grep;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "files",
        about: "Files of the tree",
        kind: ParameterKind::Count,
        paper: "5236",
        quick: "1000",
        modern: "50000",
    },
    Parameter {
        name: "directories",
        about: "Directories they are divided among",
        kind: ParameterKind::Count,
        paper: "250",
        quick: "50",
        modern: "2500",
    },
    Parameter {
        name: "file-size",
        about: "Bytes of a file in the mean",
        kind: ParameterKind::Bytes,
        paper: "12K",
        quick: "12K",
        modern: "12K",
    },
    Parameter {
        name: "pattern",
        about: "The word that is searched for",
        kind: ParameterKind::Text,
        paper: "splnet",
        quick: "splnet",
        modern: "splnet",
    },
    Parameter {
        name: "searches",
        about: "Searches, one after the other; the first may be cold",
        kind: ParameterKind::Count,
        paper: "2",
        quick: "2",
        modern: "2",
    },
];

impl Workload for Grep {
    fn name(&self) -> &'static str {
        "grep"
    }

    fn about(&self) -> &'static str {
        "search every file of a source tree of 5,236 files for a string"
    }

    fn origin(&self) -> &'static str {
        "Miltchev et al., USENIX 2003: recursive grep over the OpenBSD kernel's sources, each file \
         touched once. The tree is generated, with the same number of files. The time counts \
         listing, opening, reading and closing, not the search in memory; all text is checked and \
         the matches are counted."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn history(&self) -> &'static [Figure] {
        HISTORY
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        ensure!(!parameters.text("pattern")?.is_empty(), "--pattern: not empty");
        Ok(())
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let parameters = context.parameters();
        let tree = Tree {
            files: parameters.count("files")?,
            directories: parameters.count("directories")?.max(1),
            file_bytes: parameters.bytes("file-size")?,
            seed: context.seed(),
            word: parameters.text("pattern")?.to_owned(),
        };
        let searches = parameters.count("searches")?;
        fill(context, &mut context.driver()?, &tree)?;
        let wanted = tree.with_word();
        let cold = context.reset_caches()?;
        let mut driver = context.driver()?;
        for number in 0..searches {
            let cache = if number > 0 {
                "warm"
            } else if cold {
                "cold"
            } else {
                "first"
            };
            let found = search(context, &mut driver, &tree)?;
            ensure!(found == wanted, "wrong data: {found} files match, not {wanted}");
            let tally = driver.take_tally();
            let at = [("cache", cache.into())];
            let seconds = tally.spent.as_secs_f64();
            context.sample("search", &at, seconds, Unit::Seconds);
            context.sample("files", &at, tree.files as f64 / seconds, Unit::OperationsPerSecond);
            context.advance((number + 1) as f64 / searches as f64);
        }
        Ok(())
    }
}

const HISTORY: &[Figure] = &[Figure {
    metric: "search",
    at: &[("cache", "first")],
    value: 31.83,
    unit: Unit::Seconds,
    system: "OpenBSD 2.8, NFSv3 over 100 Mb/s Ethernet",
    source: "Miltchev et al. 2003, search of 5,236 files",
}];

/// Makes the tree.
pub(super) fn fill(context: &Context<'_>, driver: &mut Driver, tree: &Tree) -> Result<()> {
    for directory in 0..tree.directories {
        driver.make_directory(&context.path(&tree.directory(directory)))?;
    }
    for number in 0..tree.files {
        let file = driver.create(&context.path(&tree.path(number)))?;
        driver.write_data(&file, 0, tree.text(number).as_bytes())?;
        driver.close(file)?;
    }
    driver.take_tally();
    Ok(())
}

/// Reads every file of every directory in the listed order; returns how many contain the word.
pub(super) fn search(context: &Context<'_>, driver: &mut Driver, tree: &Tree) -> Result<u64> {
    let mut matches = 0;
    for directory in 0..tree.directories {
        let directory = tree.directory(directory);
        let mut entries = driver.list(&context.path(&directory), false)?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let digits = entry.name.trim_start_matches('m').trim_end_matches(".c");
            let number: u64 = digits.parse().unwrap_or(u64::MAX);
            ensure!(number < tree.files, "wrong data: {directory}/{} was not made", entry.name);
            let path = context.path(&format!("{directory}/{}", entry.name));
            let file = driver.open(&path, Access::Read)?;
            let text = driver.read_data(&file, 0, tree.text(number).as_bytes())?;
            matches += u64::from(String::from_utf8_lossy(text).contains(&tree.word));
            driver.close(file)?;
        }
    }
    Ok(matches)
}
