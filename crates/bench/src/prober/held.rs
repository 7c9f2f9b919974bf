use anyhow::{Context as _, Result, bail};
use comity_proto::nfs4::{Layoutiomode4, NfsLockType4, Openflag4, Stateid4};
use comity_remote::nfs4::{GotLayout, Locker, Opened, Opening, Wire};

use super::nfs4::{PLAIN, Prober, REST_AT, STATUS_BYTES};
use crate::call_templates::{STATEID_BYTES, Template};
use crate::fixture_tree::FixtureTree;
use crate::operation::InSession;

/// Most calls that are outstanding at once: each has a file and owners of its own.
const PLACES: usize = 32;
/// Bytes before the stateid in the result of LAYOUTGET.
const RETURN_ON_CLOSE_BYTES: usize = 4;

impl<W: Wire> Prober<'_, W> {
    /// Makes calls that come in pairs and name state, for loads of at most 32 calls outstanding on
    /// one set of connections.
    pub(super) fn held(&mut self, operation: InSession) -> Result<Vec<Template>> {
        let dir = self.session.walk(&self.root, FixtureTree::SMALL)?;
        let pairs = (0..PLACES).map(|place| match operation {
            InSession::OpenClose => self.open_close(&dir, place),
            InSession::LockUnlock => self.lock_unlock(&dir, place),
            InSession::Layout(iomode) => self.layout_pair(&dir, place, iomode),
            InSession::Getattr | InSession::Read(_) => bail!("{operation:?} names no state"),
        });
        Ok(pairs.collect::<Result<Vec<_>>>()?.concat())
    }

    fn open_close(&mut self, dir: &[u8], place: usize) -> Result<[Template; 2]> {
        let (name, owner) = (FixtureTree::file(place), owner(place));
        let compound = self.session.opening(&opening(dir, &name, &owner));
        let (open, reply) = self.like(&compound, &[])?;
        let opened = Opened::of(&reply)?;
        let gives_stateid_at = Some(REST_AT + 2 * STATUS_BYTES);
        let (close, _) = self.like(&opened.closing(), &[])?;
        let takes_stateid_at = Some(find(&close.bytes, &opened.stateid)?);
        Ok([Template { gives_stateid_at, ..open }, Template { takes_stateid_at, ..close }])
    }

    fn lock_unlock(&mut self, dir: &[u8], place: usize) -> Result<[Template; 2]> {
        let (name, owner) = (FixtureTree::file(place), owner(place));
        let opened = self.session.open(&opening(dir, &name, &owner))?;
        let (how, stretch) = (NfsLockType4::Write, (self.locked, 1));
        let mut locker = Locker::new(owner);
        self.session.lock(&opened, &mut locker, (how, stretch))?;
        // A seqid of 0 means the newest version of the state.
        locker.stateid = locker.stateid.map(|stateid| Stateid4 { seqid: 0, ..stateid });
        let unlocking = locker.unlocking(&opened.handle, stretch)?;
        self.session.perform(&unlocking)?;
        let (lock, _) = self.like(&self.session.locking(&opened, &locker, (how, stretch)), &[])?;
        let (unlock, _) = self.like(&unlocking, &[])?;
        Ok([lock, unlock])
    }

    /// The file is open from now on, and must be placed on data servers.
    fn layout_pair(
        &mut self,
        dir: &[u8],
        place: usize,
        iomode: Layoutiomode4,
    ) -> Result<[Template; 2]> {
        let (name, owner) = (FixtureTree::file(place), owner(place));
        let opened = self.session.open(&opening(dir, &name, &owner))?;
        let (get, reply) = self.like(&opened.layout_getting(iomode), &[])?;
        let layout = GotLayout::of(&opened, &reply)?;
        let gives_stateid_at = Some(REST_AT + 2 * STATUS_BYTES + RETURN_ON_CLOSE_BYTES);
        let (give_back, _) = self.like(&layout.returning(), &[])?;
        let takes_stateid_at = Some(find(&give_back.bytes, &layout.stateid)?);
        Ok([Template { gives_stateid_at, ..get }, Template { takes_stateid_at, ..give_back }])
    }
}

fn owner(place: usize) -> String {
    format!("process {place}")
}

const fn opening<'a>(dir: &'a [u8], name: &'a str, owner: &'a str) -> Opening<'a> {
    let (owner, how) = (owner.as_bytes(), Openflag4::NoCreate);
    Opening { dir, name, owner, how, access: PLAIN }
}

/// Returns the offset of a stateid in a call.
fn find(call: &[u8], stateid: &Stateid4) -> Result<usize> {
    let wanted = [&stateid.seqid.to_be_bytes()[..], &stateid.other].concat();
    let found = call.windows(STATEID_BYTES).position(|found| found == wanted);
    found.context("no stateid in a call")
}
