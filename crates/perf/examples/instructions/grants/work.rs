//! Work on files by an account and by grants, each on a server that was just started.

use std::path::Path;

use anyhow::Result;
use comity_bench::rng::Rng;
use comity_bench::suite::{Access, Files};
use comity_keys::PublicKey;
use comity_perf::grants_cost::{BothCosts, RoundCosts, directory, file};

use super::site::KeyedExport;
use super::{CHAIN, processor_time};

/// Number of cached decisions, as in 2003.
const DECISIONS: usize = 1_024;
/// Bytes that are read from or written to each file.
const BYTES: usize = 12 << 10;
/// Number of files and of transactions of PostMark: its defaults.
const POSTMARK: u64 = 500;

/// Measures a search: every file is opened, read and closed once. The time includes submitting the
/// credentials.
pub(super) fn grep(tree: &Path, files: u64) -> Result<BothCosts> {
    pair(tree, |files_of| (0..files).try_for_each(|number| read(files_of, &file(number))))
}

/// Measures a search in which each file has a chain of credentials of its own.
pub(super) fn grep_of_own_chains(tree: &Path, files: u64) -> Result<BothCosts> {
    let files = RoundCosts::own_chains(files);
    let search = |of: &mut dyn Files| (0..files).try_for_each(|number| read(of, &file(number)));
    let account = by_account(tree, search)?;
    let site = KeyedExport::new(tree, DECISIONS)?;
    let (key, directories) = site.chain(&site.find("")?, 1)?;
    let mut chains = vec![];
    for number in 0..files {
        chains.push(site.chain_to(&site.find(&file(number))?, CHAIN, &key)?);
    }
    // Grant the directories before: the cost of looking them up is not measured.
    site.submit(key, &directories)?;
    let mut of = site.files(&key)?;
    let key = processor_time(|| {
        chains.iter().try_for_each(|chain| site.submit(key, chain))?;
        search(of.as_mut())
    })?;
    Ok(BothCosts { account, key })
}

/// Measures the file operations of a build: it reads sources, and writes and reads half as many
/// products.
pub(super) fn build(tree: &Path, files: u64) -> Result<BothCosts> {
    pair(tree, |of| {
        (0..files).try_for_each(|number| read(of, &file(number)))?;
        (0..files / 2).try_for_each(|number| write(of, &product(number)))?;
        (0..files / 2).try_for_each(|number| read(of, &product(number)))?;
        (0..files / 2).try_for_each(|number| Ok(of.remove(&product(number))?))
    })
}

/// Measures the operations of PostMark: it makes files, then reads or writes and creates or deletes
/// files at random, then deletes all.
pub(super) fn postmark(tree: &Path) -> Result<BothCosts> {
    pair(tree, |of| {
        (0..POSTMARK).try_for_each(|number| write(of, &product(number)))?;
        let (mut rng, mut next) = (Rng::new(1), POSTMARK);
        let mut pool: Vec<u64> = (0..POSTMARK).collect();
        for _ in 0..POSTMARK {
            let place = rng.below(pool.len() as u64) as usize;
            read(of, &product(pool[place]))?;
            if rng.below(2) == 0 {
                write(of, &product(next))?;
                pool.push(next);
                next += 1;
            } else {
                of.remove(&product(pool.swap_remove(place)))?;
            }
        }
        pool.iter().try_for_each(|number| Ok(of.remove(&product(*number))?))
    })
}

/// Measures the same work by an account and by a chain of grants.
fn pair(tree: &Path, work: impl Fn(&mut dyn Files) -> Result<()>) -> Result<BothCosts> {
    let account = by_account(tree, &work)?;
    let site = KeyedExport::new(tree, DECISIONS)?;
    let (key, chain) = site.chain(&site.find("")?, CHAIN)?;
    let key = processor_time(|| {
        site.submit(key, &chain)?;
        work(site.files(&key)?.as_mut())
    })?;
    Ok(BothCosts { account, key })
}

fn by_account(tree: &Path, work: impl Fn(&mut dyn Files) -> Result<()>) -> Result<f64> {
    let site = KeyedExport::new(tree, DECISIONS)?;
    let key: PublicKey = site.account();
    processor_time(|| work(site.files(&key)?.as_mut()))
}

pub(super) fn read(of: &mut dyn Files, path: &str) -> Result<()> {
    let opened = of.open(path, Access::Read)?;
    of.read(opened, 0, &mut [0; BYTES])?;
    Ok(of.close(opened)?)
}

fn write(of: &mut dyn Files, path: &str) -> Result<()> {
    let made = of.create(path)?;
    of.write(made, 0, &[7; BYTES])?;
    Ok(of.close(made)?)
}

fn product(number: u64) -> String {
    format!("{}/p{number}", directory(0))
}
