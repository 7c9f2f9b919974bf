//! State of a client is joined to what the client has here. It keeps its clientid here, and its
//! stateids stay as they are (RFC 8881, 11.16.2).

use std::collections::{HashMap, HashSet};

use crate::client_state::{ClientState, Holdings};
use crate::{
    Client, ClientId, Error, ExportedClient, ExportedKind, ExportedOwner, ExportedState,
    ExportedWait, Limits, Result, StateName,
};

/// State of a client as it is added to a client that is known here.
pub(super) struct Joined {
    pub(super) client: ExportedClient,
    /// The numbers of its owners here, by their numbers at the other engine.
    owners: HashMap<u32, u32>,
}

/// Numbers of states and owners that are free here.
struct Numbers<'a> {
    here: ClientId,
    holdings: &'a mut Holdings,
    /// Those that the state gets.
    given: HashSet<u32>,
}

impl Joined {
    /// Leaves the state as it is.
    pub(super) fn unchanged(exported: &ExportedClient) -> Self {
        Self { client: exported.clone(), owners: HashMap::new() }
    }

    /// Gives the state numbers that are free here. States keep the names by which the client knows
    /// them. An owner that is known here by the same name is the same owner.
    ///
    /// # Errors
    /// [`Error::ClidInuse`]: a stateid names another state here, or an owner belongs to another
    /// principal here; [`Error::Resource`]: the client would have too many states or owners.
    pub(super) fn new(
        exported: &ExportedClient,
        (client, state): (&Client, &mut ClientState),
        limits: &Limits,
    ) -> Result<Self> {
        let names = exported.states.iter().map(|it| it.name(exported.id));
        let kept = names.filter(|name| name.client == client.id).map(|name| name.number);
        let (here, given) = (client.id, kept.collect());
        let mut numbers = Numbers { here, holdings: &mut state.holdings, given };
        let owners = numbers.of_owners(exported)?;
        let states = numbers.of_states(exported)?;
        let new = exported.owners.iter().filter_map(|it| {
            let number = *owners.get(&it.number)?;
            let is_new = state.holdings.owner(number).is_none();
            is_new.then(|| ExportedOwner { number, ..it.clone() })
        });
        let new: Vec<_> = new.collect();
        let has_room = state.holdings.len() + states.len() <= limits.states_per_client
            && state.holdings.owners_len() + new.len() <= limits.owners_per_client;
        if !has_room {
            return Err(Error::Resource);
        }
        let renumbered = exported.states.iter();
        let renumbered = renumbered.map(|it| renumber(it, (exported.id, here), &owners, &states));
        let states = renumbered.collect::<Result<_>>()?;
        let client = with_clientid_of(exported, client, state.holdings.last_number());
        Ok(Self { client: ExportedClient { owners: new, states, ..client }, owners })
    }

    /// Returns the numbers of its owners here.
    pub(super) fn owners(&self) -> impl Iterator<Item = u32> {
        self.owners.values().copied()
    }

    /// Returns the wait of one of its owners as it is here.
    pub(super) fn wait(&self, wait: &ExportedWait) -> ExportedWait {
        let owner = self.owners.get(&wait.owner).copied().unwrap_or(wait.owner);
        ExportedWait { client: self.client.id, owner, ..wait.clone() }
    }
}

impl Numbers<'_> {
    /// Returns a number that nothing has here.
    fn fresh(&mut self) -> u32 {
        loop {
            let number = self.holdings.number();
            if self.given.insert(number) {
                return number;
            }
        }
    }

    fn of_owners(&mut self, exported: &ExportedClient) -> Result<HashMap<u32, u32>> {
        exported.owners.iter().map(|it| Ok((it.number, self.of_owner(exported.id, it)?))).collect()
    }

    /// Returns the number of an owner: that of the owner of its name, if there is one.
    fn of_owner(&mut self, client: ClientId, owner: &ExportedOwner) -> Result<u32> {
        let number = owner.number;
        if let Some(known) = self.holdings.find_owner(owner.kind, &owner.name) {
            let is_its = self.holdings.owner(known).map(|it| it.principal) == Some(owner.principal);
            return if is_its { Ok(known) } else { Err(Error::ClidInuse) };
        }
        let is_free = client == self.here && !self.holdings.has(number);
        if is_free && self.given.insert(number) { Ok(number) } else { Ok(self.fresh()) }
    }

    fn of_states(&mut self, exported: &ExportedClient) -> Result<HashMap<u32, u32>> {
        let states = exported.states.iter();
        states.map(|it| Ok((it.number, self.of_state(it.name(exported.id))?))).collect()
    }

    /// Returns the number of a state here. If its stateid has the clientid of this engine, the
    /// number in the stateid is kept.
    fn of_state(&mut self, name: StateName) -> Result<u32> {
        match name.client == self.here {
            true if self.holdings.has(name.number) => Err(Error::ClidInuse),
            true => Ok(name.number),
            false if self.holdings.number_of(self.here, name).is_some() => Err(Error::ClidInuse),
            false => Ok(self.fresh()),
        }
    }
}

/// Returns a state with the numbers that it, its owner and its open have here.
fn renumber(
    state: &ExportedState,
    (there, here): (ClientId, ClientId),
    owners: &HashMap<u32, u32>,
    states: &HashMap<u32, u32>,
) -> Result<ExportedState> {
    let find = |map: &HashMap<u32, u32>, number: &u32| map.get(number).copied().ok_or(Error::Inval);
    let mut kind = state.kind.clone();
    match &mut kind {
        ExportedKind::Open { owner, .. } => *owner = find(owners, owner)?,
        ExportedKind::Lock { owner, open, .. } => {
            (*owner, *open) = (find(owners, owner)?, find(states, open)?);
        }
        ExportedKind::Delegation { .. } | ExportedKind::Revoked(_) => {}
    }
    let name = Some(state.name(there)).filter(|name| name.client != here);
    let number = find(states, &state.number)?;
    Ok(ExportedState { number, known_as: name, kind, ..state.clone() })
}

/// Returns the record of a client with the clientid that it has here. If that differs, sessions and
/// the last number are left out: they belong to the other clientid.
fn with_clientid_of(
    exported: &ExportedClient,
    client: &Client,
    last_number: u32,
) -> ExportedClient {
    if exported.id == client.id {
        return exported.clone();
    }
    ExportedClient {
        id: client.id,
        given_out: 0,
        sessions: Vec::new(),
        sessions_made: 0,
        last_number,
        ..exported.clone()
    }
}
