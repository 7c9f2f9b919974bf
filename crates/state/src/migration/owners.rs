//! The owners that belong to the part of a client's state that moves.

use std::collections::HashSet;

use super::clients::ExportedPart;
use crate::Client;
use crate::client_state::{ClientState, Owner, lock_owner};

/// Returns the numbers of the owners of a part of a client's states, in order: those that have
/// states in it, wait for locks in it, or have closed a file of it last. If the part is all state
/// of the client, it has all owners.
pub(super) fn owners_of(client: &Client, state: &ClientState, part: &ExportedPart<'_>) -> Vec<u32> {
    let states = || state.holdings.states().filter(|(_, it)| (part.of)(&it.file.key));
    let numbers: HashSet<u32> = states().map(|(number, _)| number).collect();
    let used: HashSet<u32> = states().filter_map(|(_, it)| it.owner()).collect();
    let belongs = |(number, owner): &(u32, &Owner)| {
        part.whole
            || used.contains(number)
            || part.waiting.contains(&lock_owner(client.id, *number))
            || owner.closed.is_some_and(|closed| numbers.contains(&closed))
    };
    let owners = state.holdings.owners().filter(belongs).map(|(number, _)| number);
    let mut owners: Vec<u32> = owners.collect();
    owners.sort_unstable();
    owners
}
