//! CB_LAYOUTRECALL of files (RFC 8881, 20.3): before changes that contradict layouts of other
//! clients.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{State, StateKind};
use crate::file::{File, Holder};
use crate::limits::LAYOUT_REST;
use crate::sync::atomic::Ordering;
use crate::{Client, Effect, Engine, Error, FileKey, Result, StateName, Stateid};

impl Engine {
    /// Returns whether there is any layout, or a file whose data servers have still to refuse the
    /// handles of one. The cost is one atomic load.
    #[must_use]
    pub fn has_layouts(&self) -> bool {
        self.files.layouts.load(Ordering::SeqCst) > 0
    }

    /// Recalls the layouts of a file that other clients than `mine` have, for a change of its size
    /// or of the rights to it, if `may` returns true. `may` is called only if there are any.
    ///
    /// # Errors
    /// [`Error::Delay`]: layouts are being recalled, or data servers have still to refuse the
    /// handles of a layout that was not returned. [`Error::Perm`]: `may` returned false, and no
    /// layout is recalled.
    pub fn recall_layouts_if(
        &self,
        now: Duration,
        mine: Option<&Client>,
        key: &FileKey,
        may: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Some(file) = self.files.get(key) else { return Ok(()) };
        let mine = mine.map(|client| client.id);
        if !file.state().layouts.stand_against(mine) {
            return Ok(());
        }
        if !may() {
            return Err(Error::Perm);
        }
        let mut on_file = file.state();
        on_file.layouts.rest_until(now.saturating_add(LAYOUT_REST));
        let others: Vec<Holder> = on_file.layouts.others(mine).collect();
        drop(on_file);
        self.files.watch(&file);
        others.into_iter().for_each(|holder| self.recall_layout(now, &file, holder));
        let stands = file.state().layouts.stand_against(mine);
        if stands { Err(Error::Delay) } else { Ok(()) }
    }

    /// Begins to recall a layout, unless that is under way. The recall is a change of the layout's
    /// stateid (RFC 8881, 12.5.3). A client whose lease has expired is evicted instead.
    fn recall_layout(&self, now: Duration, file: &Arc<File>, holder: Holder) {
        let Some(client) = self.clients.get(holder.client) else { return };
        if self.has_expired(now, &client) {
            return self.expire(now, &client);
        }
        let mut state = client.state();
        if state.holdings.get(holder.state).is_some()
            && file.state().layouts.begin_recall(now, holder)
            && let Ok(stateid) = state.holdings.change(client.id, holder.state)
        {
            drop(state);
            self.effect_queue.push(Effect::RecallLayout { client, stateid, file: file.key });
        }
    }

    /// Notes that a CB_LAYOUTRECALL was sent: from now on the client has a lease's time to return
    /// the layout. A repeated one does not extend that time.
    pub fn layout_recall_sent(&self, now: Duration, client: &Client, stateid: &Stateid) {
        let Ok(StateName { client: id, number }) = stateid.name() else { return };
        let state = client.state();
        let Some(known) = state.holdings.get(number).filter(|_| id == client.id) else { return };
        let holder = Holder { client: id, state: number };
        if let Some(recall) = known.file.state().layouts.recall_mut(holder) {
            self.counters.recalls_sent.add(usize::from(recall.sent.is_none()));
            recall.sent.get_or_insert(now);
        }
    }

    /// Ends a layout that its client does not know (`NFS4ERR_NOMATCHING_LAYOUT`): it has returned
    /// the layout by forgetting it (RFC 8881, 12.5.5.1).
    pub fn layout_forgotten(&self, now: Duration, client: &Client, stateid: &Stateid) {
        let Ok(StateName { client: id, number }) = stateid.name() else { return };
        let mut state = client.state();
        let known = state.holdings.get(number).filter(|_| id == client.id);
        // A layout with a newer seqid is not the one that was recalled.
        let is_same = known
            .is_some_and(|it| matches!(it.what, StateKind::Layout(_)) && it.seqid == stateid.seqid);
        if is_same {
            self.end_returned_layout(now, client, &mut state, number);
        }
    }

    /// Returns the recalls of a client's layouts that are under way, so that they are sent again.
    #[must_use]
    pub fn layout_recalls(&self, client: &Arc<Client>) -> Vec<Effect> {
        let state = client.state();
        let layouts =
            state.holdings.states().filter(|(_, state)| matches!(state.what, StateKind::Layout(_)));
        let recalled = |(number, it): (u32, &State)| {
            let holder = Holder { client: client.id, state: number };
            it.file.state().layouts.recall_mut(holder)?;
            let stateid = Stateid::new(client.id, number, it.seqid);
            Some(Effect::RecallLayout { client: Arc::clone(client), stateid, file: it.file.key })
        };
        layouts.filter_map(recalled).collect()
    }

    /// Takes layouts that were recalled and not returned in time. The client is told nothing: the
    /// data servers refuse its calls, and the stateid is invalid.
    pub(crate) fn take_overdue_layouts(&self, now: Duration, file: &Arc<File>) {
        let mut on_file = file.state();
        on_file.layouts.refresh(now);
        let overdue = on_file.layouts.recalled();
        let overdue = overdue.filter(|(_, recall)| recall.is_overdue(now, self.settings.lease));
        let overdue: Vec<Holder> = overdue.map(|(holder, _)| holder).collect();
        drop(on_file);
        self.counters.recalls_overdue.add(overdue.len());
        for holder in overdue {
            if let Some(client) = self.clients.get(holder.client) {
                let mut state = client.state();
                self.fence(file);
                self.drop_layout(now, &client, &mut state, holder.state);
            }
        }
    }
}
