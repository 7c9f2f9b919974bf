use std::collections::{HashMap, HashSet};

use super::client::find_owner;
use super::{are_unique, require};
use crate::file::RESTING_MAX;
use crate::migration::error::{ImportRefusal, Section};
use crate::migration::export_volume::ExportedVolume;
use crate::{ClientId, ExportedClient, ExportedFile, ExportedWait, OwnerKind, Result};

/// Checks the files and their queues.
pub(super) fn check(volume: &ExportedVolume) -> Result<(), ImportRefusal> {
    let clients = volume.clients.iter().map(|client| (client.id, client)).collect();
    let keys = volume.files.iter().map(|file| file.key);
    let holds = are_unique(keys.clone()) && keys.clone().all(|key| key.volume == volume.volume);
    require(holds, Section::Files, "a file is of another volume, or exists twice")?;
    let states = volume.clients.iter().flat_map(|client| &client.states);
    let used: HashSet<_> =
        states.filter(|state| !state.kind.is_over()).map(|state| state.file).collect();
    let is_needed = |file: &ExportedFile| used.contains(&file.key) || has_queue_or_delay(file);
    let holds = volume.files.iter().all(is_needed);
    require(holds, Section::Files, "a file has no state, no queue and no delay")?;
    volume.files.iter().try_for_each(|file| check_file(&clients, file))
}

fn has_queue_or_delay(file: &ExportedFile) -> bool {
    let rests = file.resting.iter().any(|(_, left)| !left.is_zero());
    rests || !file.layout_rest.is_zero() || !file.waits.is_empty()
}

fn check_file(
    clients: &HashMap<ClientId, &ExportedClient>,
    file: &ExportedFile,
) -> Result<(), ImportRefusal> {
    let holds = file.resting.len() <= RESTING_MAX;
    require(holds, Section::Files, "a file has too many delays")?;
    let wishes = file.waits.iter().map(|it| (it.client, it.owner, it.range, it.kind));
    require(are_unique(wishes), Section::Files, "an owner waits twice for the same lock")?;
    let holds = file.waits.iter().all(|wait| is_known(clients, wait));
    require(holds, Section::Files, "an unknown owner waits, or a range has no bytes")
}

fn is_known(clients: &HashMap<ClientId, &ExportedClient>, wait: &ExportedWait) -> bool {
    let owner = clients.get(&wait.client).and_then(|client| find_owner(client, wait.owner));
    owner.is_some_and(|owner| owner.kind == OwnerKind::Lock) && wait.range.first <= wait.range.last
}
