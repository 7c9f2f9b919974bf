use super::{are_ordered, are_unique, require, states};
use crate::migration::error::{ImportRefusal, Section};
use crate::{
    ClientProtocol, Error, ExportedClient, ExportedGrant, ExportedKind, ExportedOwner, Limits,
    OwnerKind, Result,
};

/// Checks the record, the owners, the states and the grants of a client.
pub(super) fn check(
    client: &ExportedClient,
    volume: u64,
    limits: &Limits,
) -> Result<(), ImportRefusal> {
    let few = client.states.len() <= limits.states_per_client
        && client.owners.len() <= limits.owners_per_client
        && count_granted(client) <= limits.locks_per_file;
    if !few {
        return Err(ImportRefusal::Client(client.id, Error::Resource));
    }
    let owners = client.owners.iter().map(|owner| owner.number);
    let states = client.states.iter().map(|state| state.number);
    let numbers = owners.chain(states);
    let are_numbers = numbers.clone().all(|number| number != 0) && are_unique(numbers);
    require(are_numbers, Section::States, "two states or owners have the same number, or zero")?;
    let names = client.states.iter().filter_map(|state| state.known_as);
    let are_foreign = names.clone().all(|name| name.client != client.id && name.number != 0);
    require(are_foreign, Section::States, "a stateid has the number of another state, or zero")?;
    require(are_unique(names), Section::States, "two states have the same stateid")?;
    let names = client.owners.iter().map(|owner| (owner.kind, &owner.name));
    require(are_unique(names), Section::Owners, "two owners have the same name")?;
    client.owners.iter().try_for_each(|owner| check_owner(client, owner))?;
    states::check(client, volume)?;
    client.granted.iter().try_for_each(|grant| check_grant(client, volume, grant))
}

/// Returns the number of ranges in all grants. A grant follows a wait for a lock, and few are not
/// acknowledged at any time.
fn count_granted(client: &ExportedClient) -> usize {
    client.granted.iter().map(|grant| 1 + grant.before.len()).sum()
}

fn check_owner(client: &ExportedClient, owner: &ExportedOwner) -> Result<(), ImportRefusal> {
    let is_closed = |number: u32| {
        let state = client.states.binary_search_by_key(&number, |state| state.number);
        let state = state.ok().and_then(|at| client.states.get(at));
        matches!(
            state.map(|state| &state.kind),
            Some(ExportedKind::Open { closed: true, owner: whose, .. }) if *whose == owner.number
        )
    };
    let holds = owner.closed.is_none_or(is_closed);
    require(holds, Section::Owners, "the last CLOSE of an owner names no closed open of it")
}

fn check_grant(
    client: &ExportedClient,
    volume: u64,
    grant: &ExportedGrant,
) -> Result<(), ImportRefusal> {
    let owner = find_owner(client, grant.owner);
    let holds = client.protocol == ClientProtocol::Nlm
        && owner.is_some_and(|owner| owner.kind == OwnerKind::Lock)
        && grant.file.volume == volume
        && grant.range.first <= grant.range.last
        && are_ordered(&grant.before)
        && grant.before.iter().all(|(range, _)| grant.range.contains(*range));
    require(holds, Section::Grants, "a grant is of no host, has no owner, or other ranges")
}

/// Returns an owner. Owners are in the order of their numbers.
pub(super) fn find_owner(client: &ExportedClient, number: u32) -> Option<&ExportedOwner> {
    let at = client.owners.binary_search_by_key(&number, |owner| owner.number).ok()?;
    client.owners.get(at)
}
