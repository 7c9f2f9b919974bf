//! The time of the first decision about an object, and of the same decision from the table.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};
use comity_perf::grants_cost::{CHAIN_LENGTHS, CREDENTIALS, OF_ONE_FOLDER, directory, file};
use comity_vfs::Handle;

use super::site::KeyedExport;
use super::{CHAIN, processor_time};

/// Number of cached decisions, as in 2003.
const DECISIONS: usize = 1_024;
/// Most files about which a first decision is made.
const MET_MAX: u64 = 1_000;
/// Number of look-ups of a cached decision.
const TAKEN: u32 = 200_000;
/// Number of signatures that are verified.
const VERIFIED: u32 = 500;

/// Nanoseconds in which a signature is verified.
pub(super) fn signature() -> Result<f64> {
    let key = PrivateKey::generate(Algorithm::Ed25519)?;
    let message = [7; 500];
    let signature = key.sign(&message)?;
    let all = processor_time(|| {
        for _ in 0..VERIFIED {
            ensure!(key.public_key().verify(black_box(&message), signature.as_bytes()), "forged");
        }
        Ok(())
    })?;
    Ok(all / f64::from(VERIFIED))
}

/// Nanoseconds of the first decision about a file by a chain of grants to the tree.
pub(super) fn decision(tree: &Path, files: u64, links: usize) -> Result<f64> {
    let site = KeyedExport::new(tree, DECISIONS)?;
    let (key, chain) = site.chain(&site.find("")?, links)?;
    site.submit(key, &chain)?;
    first(&site, key, &met(&site, files)?)
}

/// Nanoseconds of the same decision from the table.
pub(super) fn kept(tree: &Path) -> Result<f64> {
    let site = KeyedExport::new(tree, DECISIONS)?;
    let (key, chain) = site.chain(&site.find("")?, CHAIN)?;
    site.submit(key, &chain)?;
    let (holder, object) = (site.holder(key), site.find(&file(0))?);
    site.pass(&holder, &object)?;
    let all =
        processor_time(|| (0..TAKEN).try_for_each(|_| site.pass(black_box(&holder), &object)))?;
    Ok(all / f64::from(TAKEN))
}

/// Measures [`decision`] for each length of chain.
pub(super) fn chains(tree: &Path, files: u64) -> Result<Vec<f64>> {
    CHAIN_LENGTHS.iter().map(|links| decision(tree, files, *links)).collect()
}

/// Measures the first decision for each number of [`CREDENTIALS`] that the key holds: one is for
/// the tree, the others are for other objects.
pub(super) fn credentials(tree: &Path, files: u64) -> Result<Vec<f64>> {
    let number = |count: &usize| {
        let site = KeyedExport::new(tree, DECISIONS)?;
        let others: Result<Vec<Handle>> = (1..*count).map(other).collect();
        let objects = [vec![site.find("")?], others?].concat();
        let (site, key) = holding(tree, &site, &objects)?;
        first(&site, key, &met(&site, files)?)
    };
    CREDENTIALS.iter().map(number).collect()
}

/// Measures the first decision if the key holds [`OF_ONE_FOLDER`] credentials for the file's
/// folder.
pub(super) fn one_folder(tree: &Path, files: u64) -> Result<f64> {
    let site = KeyedExport::new(tree, DECISIONS)?;
    let folder = site.find(&directory(0))?;
    let (site, key) = holding(tree, &site, &vec![folder; OF_ONE_FOLDER])?;
    let all = met(&site, files.min(10))?;
    first(&site, key, &all)
}

/// An object outside the tree.
fn other(number: usize) -> Result<Handle> {
    let bytes = [&[0xee; 8][..], &number.to_be_bytes()].concat();
    Handle::new(&bytes).ok().context("no handle")
}

/// A server, and a key that holds a credential for each object. The server loads the credentials as
/// those of an earlier run, because the time to submit them grows with the square of their number.
fn holding(
    tree: &Path,
    site: &KeyedExport,
    objects: &[Handle],
) -> Result<(KeyedExport, PublicKey)> {
    let key = *PrivateKey::generate(Algorithm::Ed25519)?.public_key();
    let held = objects.iter().map(|object| Ok((key, site.chain_to(object, 1, &key)?)));
    let held: Result<Vec<_>> = held.collect();
    Ok((KeyedExport::holding(tree, DECISIONS, site.signer(), held?)?, key))
}

/// Handles of files.
fn met(site: &KeyedExport, files: u64) -> Result<Vec<Handle>> {
    (0..files.min(MET_MAX)).map(|number| site.find(&file(number))).collect()
}

fn first(site: &KeyedExport, key: PublicKey, files: &[Handle]) -> Result<f64> {
    let holder = site.holder(key);
    let all = processor_time(|| files.iter().try_for_each(|file| site.pass(&holder, file)))?;
    Ok(all / files.len() as f64)
}
