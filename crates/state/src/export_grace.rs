//! Grace periods of single exports. An export that comes here from a server that has failed comes
//! without its state: the clients of that server reclaim it, and all other exports go on.

use std::time::Duration;

use crate::export_graces::ExportGrace;
use crate::recovery::Grace;
use crate::sync::atomic::Ordering;
use crate::{
    Caller, Client, ClientOwner, ClientProtocol, EndingGrace, Engine, Error, FileKey, Recovered,
    Result,
};

impl Engine {
    /// Begins a grace period of an export that this server serves from now on: these clients may
    /// reclaim their state there. Returns false if there are none, so that there is no such period.
    pub fn begin_export_grace(&self, now: Duration, export: u32, recovered: Recovered) -> bool {
        let length = self.settings.grace;
        let grace = Grace::new((now.saturating_add(length), length), recovered);
        let is_on = grace.is_on();
        if is_on {
            self.export_graces.insert(export, grace);
        }
        is_on
    }

    /// Returns the grace periods of exports that are due. From then on nothing is reclaimed there.
    /// The shell stores who has lost the right to reclaim, and then calls
    /// [`Engine::end_export_grace`]; until then a period is returned each time.
    #[must_use]
    pub fn due_export_graces(&self, now: Duration) -> Vec<EndingGrace> {
        let due = |it: &ExportGrace| {
            let is_closing = it.is_closing.load(Ordering::Acquire);
            is_closing || it.grace.is_over(now) || it.grace.is_idle(now)
        };
        let all = self.export_graces.all().into_iter();
        let due = all.filter(|(_, it)| due(it)).map(|(export, it)| {
            it.is_closing.store(true, Ordering::Release);
            EndingGrace { export, lost: it.grace.lost() }
        });
        due.collect()
    }

    /// Ends the grace period of an export.
    pub fn end_export_grace(&self, export: u32) {
        self.export_graces.remove(export);
    }

    /// Returns the exports that are in grace on their own, with the longest time that is left.
    #[must_use]
    pub fn export_graces(&self, now: Duration) -> Vec<(u32, Duration)> {
        let all = self.export_graces.all().into_iter();
        all.map(|(export, it)| (export, it.grace.left(now))).collect()
    }

    /// Returns whether only reclaims are accepted in an export.
    #[must_use]
    pub fn is_in_grace_at(&self, export: u32) -> bool {
        self.grace.is_on() || self.export_graces.of(export).is_some()
    }

    /// Returns whether an export is in grace on its own. The cost is one atomic load.
    #[must_use]
    #[inline]
    pub fn has_export_graces(&self) -> bool {
        self.export_graces.has_any()
    }

    /// Returns whether a client of NFSv4 may still reclaim opens and delegations in an export. The
    /// records name clients and no files, so the answer holds for every file. Hosts of NLM do not
    /// count, since their locks are advisory.
    #[must_use]
    pub fn awaits_opens(&self, export: u32) -> bool {
        let of_export = self.export_graces.of(export);
        self.grace.awaits_opens() || of_export.is_some_and(|it| it.grace.awaits_opens())
    }

    /// RECLAIM_COMPLETE for the file system of an export (RFC 8881, 18.51), or of none. It has an
    /// effect only while the export is in grace on its own.
    ///
    /// # Errors
    /// [`Error::WrongCred`]: the client belongs to another principal.
    pub fn reclaim_complete_at(
        &self,
        (export, client): (Option<u32>, &Client),
        caller: Caller,
    ) -> Result<()> {
        if !client.is_principal(&caller) {
            return Err(Error::WrongCred);
        }
        if let Some(it) = export.and_then(|export| self.export_graces.of(export)) {
            it.grace.complete(client);
        }
        Ok(())
    }

    /// Checks whether a client may reclaim its state of a file. `is_complete` is true if it has
    /// completed its reclaims of all file systems; an export that came here later is not among
    /// them.
    pub(crate) fn may_reclaim(
        &self,
        now: Duration,
        (client, is_complete): (&Client, bool),
        file: &FileKey,
    ) -> Result<()> {
        match self.export_graces.of(file.export) {
            Some(it) if it.is_closing.load(Ordering::Acquire) => Err(Error::NoGrace),
            Some(it) => it.grace.may_reclaim(now, client, file),
            None if is_complete => Err(Error::NoGrace),
            None => self.grace.may_reclaim(now, client, file),
        }
    }

    /// Calls `act` with each grace period: that after a restart, and those of exports.
    pub(crate) fn each_grace(&self, mut act: impl FnMut(&Grace)) {
        act(&self.grace);
        self.each_export_grace(|_, grace| act(grace));
    }

    /// Calls `act` with each export that is in grace on its own.
    pub(crate) fn each_export_grace(&self, mut act: impl FnMut(u32, &Grace)) {
        self.export_graces.all().iter().for_each(|(export, it)| act(*export, &it.grace));
    }

    /// Checks that a caller may take a name that no client has, in each grace period.
    ///
    /// # Errors
    /// Those of [`Grace::may_take_name`].
    pub(crate) fn may_take_free_name(
        &self,
        name: (ClientProtocol, &ClientOwner),
        caller: Caller,
    ) -> Result<()> {
        self.grace.may_take_name(name, caller)?;
        let mut exports = self.export_graces.all().into_iter();
        exports.try_for_each(|(_, it)| it.grace.may_take_name(name, caller))
    }
}
