use std::collections::{HashMap, HashSet};

use super::client::find_owner;
use super::{are_ordered, require};
use crate::migration::error::{ImportRefusal, Section};
use crate::{
    ByteRange, ClientProtocol, DelegationKind, ExportedClient, ExportedKind, ExportedState,
    FileKey, LockType, OwnerKind, Result, Share,
};

type LockRanges<'a> = &'a [(ByteRange, LockType)];

/// The states of a client that were checked before.
#[derive(Default)]
struct Seen<'a> {
    /// Opens, delegations, and locks of hosts by owner and file; a delegation has no owner.
    of_files: HashSet<(Option<u32>, FileKey)>,
    /// Other lock states by owner and open.
    of_opens: HashSet<(u32, u32)>,
    /// The ranges of lock-owners in files, and how many of them the states count together.
    ranges: HashMap<(u32, FileKey), (LockRanges<'a>, u64)>,
}

impl<'a> Seen<'a> {
    /// Notes a lock state of an owner; returns whether the owner's other states of the file have
    /// the same ranges.
    fn has_same(&mut self, key: (u32, FileKey), (ranges, counted): (LockRanges<'a>, u32)) -> bool {
        let (known, count) = self.ranges.entry(key).or_insert((ranges, 0));
        *count = count.saturating_add(counted.into());
        *known == ranges
    }

    /// Returns whether all ranges are counted. An engine counts each range in one of the states
    /// through which its owner has locked, and frees what another state counts only there. The sum
    /// may therefore be more than the number of ranges, and is never less.
    fn are_counted(&self) -> bool {
        self.ranges.values().all(|(ranges, counted)| ranges.len() as u64 <= *counted)
    }

    /// Returns whether a lock-owner has no other state for an open; one of a host, for a file.
    fn is_new(&mut self, (owner, open): (u32, u32), lock: &ExportedState) -> bool {
        match open {
            0 => self.of_files.insert((Some(owner), lock.file)),
            open => self.of_opens.insert((owner, open)),
        }
    }
}

/// Checks the states of a client, which are in the order of their numbers.
pub(super) fn check(client: &ExportedClient, volume: u64) -> Result<(), ImportRefusal> {
    let sorted = client.states.is_sorted_by_key(|state| state.number)
        && client.owners.is_sorted_by_key(|owner| owner.number);
    require(sorted, Section::States, "states or owners are not in order")?;
    let mut seen = Seen::default();
    client.states.iter().try_for_each(|state| check_state(client, volume, state, &mut seen))?;
    require(seen.are_counted(), Section::States, "locks have more ranges than they count")
}

fn check_state<'a>(
    client: &'a ExportedClient,
    volume: u64,
    state: &'a ExportedState,
    seen: &mut Seen<'a>,
) -> Result<(), ImportRefusal> {
    require(state.file.volume == volume, Section::States, "a state is of another volume")?;
    match &state.kind {
        ExportedKind::Open { owner, share, closed, .. } => {
            let has_bits = share.access <= Share::BOTH && share.deny <= Share::BOTH;
            let is_new = *closed || seen.of_files.insert((Some(*owner), state.file));
            let holds = has_bits && is_new && has_owner(client, *owner, OwnerKind::Open);
            require(holds, Section::States, "an open has no owner, or exists twice")
        }
        ExportedKind::Lock { owner, open, counted, ranges, .. } => {
            let holds = seen.has_same((*owner, state.file), (ranges, *counted))
                && are_ordered(ranges)
                && has_owner(client, *owner, OwnerKind::Lock)
                && is_place(client, *open, state)
                && seen.is_new((*owner, *open), state);
            require(holds, Section::States, "locks have no owner or open, or other ranges")
        }
        ExportedKind::Delegation { kind, .. } => {
            let holds = *kind != DelegationKind::Directory
                && client.protocol != ClientProtocol::Nlm
                && seen.of_files.insert((None, state.file));
            require(holds, Section::States, "a delegation is of a directory, or exists twice")
        }
        ExportedKind::Revoked(_) => Ok(()),
    }
}

fn has_owner(client: &ExportedClient, number: u32, kind: OwnerKind) -> bool {
    find_owner(client, number).is_some_and(|owner| owner.kind == kind)
}

/// Returns whether a lock state belongs to an open of the same file. Those of a host belong to
/// none.
fn is_place(client: &ExportedClient, open: u32, lock: &ExportedState) -> bool {
    if client.protocol == ClientProtocol::Nlm {
        return open == 0;
    }
    let at = client.states.binary_search_by_key(&open, |state| state.number).ok();
    let state = at.and_then(|at| client.states.get(at)).filter(|it| it.file == lock.file);
    matches!(state.map(|it| &it.kind), Some(ExportedKind::Open { closed: false, .. }))
}
