//! Delegations end: by DELEGRETURN, or by revocation if the client does not answer a recall.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::StateKind;
use crate::file::{Delegated, File, Holder};
use crate::{
    At, Client, ClientId, ClientProtocol, DelegationKind, Engine, Error, FileKey, Record, Result,
    Revocation, Sender, Share, Stateid,
};

impl Engine {
    /// DELEGRETURN (RFC 8881, 18.6). It also takes back a grant before the client is told of it.
    ///
    /// # Errors
    /// The errors of a stateid that is not valid for this file; [`Error::WrongCred`]: another
    /// principal received the delegation.
    pub fn delegreturn(&self, (sender, file): At<'_>, stateid: &Stateid) -> Result<()> {
        let found = self.find(&sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut state = client.live()?;
        match found.current(&mut state, (&sender, file), stateid)?.what {
            StateKind::Delegation(_) => {}
            _ => return Err(Error::BadStateid),
        }
        let returned = state.holdings.remove(number);
        if let Some(returned) = returned {
            let holder = Holder { client: client.id, state: number };
            let recalled = returned.file.state().delegations.is_recalled(holder);
            self.counters.recalls_returned.add(usize::from(recalled));
            if !recalled && is_directory(&returned.what) {
                self.note_directory_return(sender.now, client.id, &returned.file.key);
            }
            self.release_state(sender.now, holder, &returned, &mut Vec::new());
            self.end_layout_without_access(sender.now, client, (&mut state, &returned.file));
        }
        Ok(())
    }

    fn note_directory_return(&self, now: Duration, client: ClientId, directory: &FileKey) {
        let mut saved = 0;
        self.history.note(client, directory, |seen| {
            saved = seen.saved(now);
            seen.end();
        });
        self.counters.directory_calls_saved.add(saved as usize);
    }

    /// Checks that a delegation belongs to this client and this file, and allows this share. All
    /// users of the client may open the file under it. The OPEN renews the lease if it succeeds.
    pub(crate) fn check_delegation(
        &self,
        sender: Sender<'_>,
        stateid: &Stateid,
        file: &FileKey,
        share: Share,
    ) -> Result<()> {
        let found = self.find(&sender, stateid)?;
        let state = found.client.live()?;
        let state = found.look(&state, &sender, stateid)?;
        let StateKind::Delegation(delegating) = &state.what else { return Err(Error::BadStateid) };
        if state.file.key != *file {
            return Err(Error::BadStateid);
        }
        if delegating.kind.allows(share.access) { Ok(()) } else { Err(Error::Openmode) }
    }

    pub(crate) fn with_delegation(
        &self,
        client: &Client,
        stateid: &Stateid,
        act: impl FnOnce(&mut Delegated),
    ) {
        let Ok(name) = stateid.name() else { return };
        let state = client.state();
        let Some(number) = state.holdings.number_of(client.id, name) else { return };
        let Some(known) = state.holdings.get(number) else { return };
        let holder = Holder { client: client.id, state: number };
        if let Some(delegated) = known.file.state().delegations.get_mut(holder) {
            act(delegated);
        }
    }

    /// Revokes delegations of a file that were not returned in time.
    pub(crate) fn revoke_overdue(&self, now: Duration, file: &Arc<File>) {
        let mut on_file = file.state();
        on_file.delegations.refresh(now);
        let overdue = on_file.delegations.iter_mut().filter(|(_, delegated)| {
            delegated.recall.is_some_and(|recall| recall.is_overdue(now, self.settings.lease))
        });
        let overdue: Vec<Holder> = overdue.map(|(holder, _)| holder).collect();
        drop(on_file);
        self.counters.recalls_overdue.add(overdue.len());
        for holder in overdue {
            if let Some(client) = self.clients.get(holder.client) {
                self.revoke(now, file, (&client, holder));
            }
        }
    }

    fn revoke(&self, now: Duration, file: &Arc<File>, (client, holder): (&Arc<Client>, Holder)) {
        let mut state = client.state();
        if state.holdings.revoke(holder.state, Revocation::Unreturned, now).is_none() {
            return;
        }
        if client.protocol == ClientProtocol::Setclientid {
            // Minor version 0 has no FREE_STATEID.
            state.holdings.remove(holder.state);
        }
        client.note_revoked(&state);
        self.counters.revoked.add(1);
        let kind = self.drop_delegation(file, &mut file.state(), holder);
        self.take_layout_without_right(now, client, (&mut state, file));
        // Delegations of directories are not reclaimed after a restart.
        if kind != Some(DelegationKind::Directory) {
            self.record(Record::Revoked(client.recorded(), file.key));
        }
    }
}

const fn is_directory(what: &StateKind) -> bool {
    match what {
        StateKind::Delegation(state) => matches!(state.kind, DelegationKind::Directory),
        _ => false,
    }
}
