//! Layouts end with what they need, by LAYOUTRETURN, or with a fence.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, StateKind};
use crate::file::{File, FileState, Holder};
use crate::layout::LayoutState;
use crate::sync::atomic::Ordering;
use crate::{Client, Engine, LayoutIomode, Share};

impl LayoutIomode {
    pub(crate) const fn access(self) -> u32 {
        match self {
            Self::Read => Share::READ,
            Self::ReadWrite => Share::WRITE,
        }
    }
}

impl Engine {
    /// Ends the layout of a file if the client has closed and returned all that it had of the file.
    pub(crate) fn end_layout_without_access(
        &self,
        now: Duration,
        client: &Client,
        (state, file): (&mut ClientState, &Arc<File>),
    ) {
        let on_file = file.state();
        let has_access = on_file.shares.opens_of(client.id).next().is_some()
            || on_file.delegations.of(client.id).is_some();
        let layout = on_file.layouts.of(client.id);
        drop(on_file);
        if let Some(number) = layout.filter(|_| !has_access) {
            self.end_returned_layout(now, client, state, number);
        }
    }

    /// Takes the layout of a file from a client that lost a right to the file, if the layout needs
    /// a right that the client has no more.
    pub(crate) fn take_layout_without_right(
        &self,
        now: Duration,
        client: &Client,
        (state, file): (&mut ClientState, &Arc<File>),
    ) {
        let Some(number) = file.state().layouts.of(client.id) else { return };
        let Some(StateKind::Layout(layout)) = state.holdings.get(number).map(|it| &it.what) else {
            return;
        };
        let [reads, writes] = layout.ranges();
        let needs = [(reads, LayoutIomode::Read), (writes, LayoutIomode::ReadWrite)];
        let mut needs = needs.into_iter().filter(|(ranges, _)| *ranges > 0);
        if needs.any(|(_, iomode)| !has_access(state, (client, file), iomode)) {
            self.fence(file);
            self.drop_layout(now, client, state, number);
        }
    }

    /// Ends a layout that its client has given back, which ends a recall of it.
    pub(crate) fn end_returned_layout(
        &self,
        now: Duration,
        client: &Client,
        state: &mut ClientState,
        number: u32,
    ) {
        let Some(file) = state.holdings.get(number).map(|it| Arc::clone(&it.file)) else { return };
        let holder = Holder { client: client.id, state: number };
        let recalled = file.state().layouts.recall_mut(holder).is_some();
        self.counters.recalls_returned.add(usize::from(recalled));
        self.drop_layout(now, client, state, number);
    }

    pub(crate) fn drop_layout(
        &self,
        now: Duration,
        client: &Client,
        state: &mut ClientState,
        number: u32,
    ) {
        if let Some(layout) = state.holdings.remove(number) {
            let holder = Holder { client: client.id, state: number };
            self.release_state(now, holder, &layout, &mut Vec::new());
        }
    }

    /// Has the data servers of a file refuse all handles of layouts that were given out so far. It
    /// comes before the layout ends, so that no change of the file comes in between.
    pub(crate) fn fence(&self, file: &Arc<File>) {
        if file.state().layouts.begin_fence() {
            self.files.layouts.fetch_add(1, Ordering::SeqCst);
            self.fences.push(file.key);
        }
    }

    /// Notes the end of a layout for writing, after which data servers may have to be asked for the
    /// size of the file (RFC 8881, 12.5.4).
    pub(crate) fn end_writing(&self, file: &File, on_file: &mut FileState, is_committed: bool) {
        if on_file.layouts.end_writing(is_committed) {
            self.sizes.push(file.key);
        }
    }

    /// Has data servers asked for the sizes of the files that a client may have written by layouts.
    /// Its lease has expired, so it may never tell.
    pub(crate) fn doubt_sizes(&self, client: &Client) {
        let state = client.state();
        for (_, it) in state.holdings.states() {
            let StateKind::Layout(layout) = &it.what else { continue };
            if layout.is_for_writing() && it.file.state().layouts.doubt_size() {
                self.sizes.push(it.file.key);
            }
        }
    }

    pub(super) fn forget_layout(
        &self,
        file: &File,
        on_file: &mut FileState,
        (holder, layout): (Holder, &LayoutState),
    ) {
        if on_file.layouts.remove(holder) {
            self.files.layouts.fetch_sub(1, Ordering::SeqCst);
        }
        if layout.is_for_writing() {
            self.end_writing(file, on_file, layout.is_committed);
        }
    }
}

/// Returns whether an open or a delegation of the client allows this access.
pub(crate) fn has_access(
    state: &ClientState,
    (client, file): (&Client, &File),
    iomode: LayoutIomode,
) -> bool {
    let on_file = file.state();
    let delegation = on_file.delegations.of(client.id).map(|holder| holder.state);
    let mut numbers = on_file.shares.opens_of(client.id).chain(delegation);
    numbers.any(|number| match state.holdings.get(number).map(|it| &it.what) {
        Some(StateKind::Open(opening)) => opening.share.access & iomode.access() != 0,
        Some(StateKind::Delegation(delegating)) => delegating.kind.allows(iomode.access()),
        _ => false,
    })
}
