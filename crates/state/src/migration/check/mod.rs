//! Values from another server are checked before they are imported: an engine that they were taken
//! from keeps these rules, and other bytes may not.

mod client;
mod files;
mod sessions;
mod states;

use std::collections::HashSet;
use std::hash::Hash;

use super::error::{ImportRefusal, Section};
use super::export_volume::ExportedVolume;
use crate::{ByteRange, LockType, Result, Settings};

/// Checks that the values do not contradict each other, and keep the bounds of this server.
pub(super) fn check(volume: &ExportedVolume, settings: &Settings) -> Result<(), ImportRefusal> {
    let names = volume.clients.iter().map(|it| it.recorded().key());
    let numbers = volume.clients.iter().map(|client| client.id.number());
    require(are_unique(names), Section::Clients, "two clients have the same name")?;
    require(are_unique(numbers), Section::Clients, "two clientids have the same number")?;
    for client in &volume.clients {
        client::check(client, volume.volume, &settings.limits)?;
        sessions::check(client, settings)?;
    }
    files::check(volume)
}

fn require(holds: bool, section: Section, what: &'static str) -> Result<(), ImportRefusal> {
    if holds { Ok(()) } else { Err(ImportRefusal::Contradiction(section, what)) }
}

fn are_unique<T: Hash + Eq>(values: impl Iterator<Item = T>) -> bool {
    let mut known = HashSet::new();
    let mut values = values;
    values.all(|value| known.insert(value))
}

/// Returns whether each range has a byte, and they follow each other.
fn are_ordered(ranges: &[(ByteRange, LockType)]) -> bool {
    let follows = |pair: &[(ByteRange, LockType)]| match pair {
        [(one, _), (other, _)] => one.last < other.first,
        _ => true,
    };
    ranges.iter().all(|(range, _)| range.first <= range.last) && ranges.windows(2).all(follows)
}
