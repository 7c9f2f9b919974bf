//! Directory delegations (RFC 8881, 10.9 and 18.39). They are delegations of their own kind: they
//! are recalled, returned, revoked, counted and reported like those of files. They are not
//! reclaimed after a restart (RFC 8881, 10.9.5).

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::client_state::{DelegationState, StateKind};
use crate::directories::{DirectoryPolicy, NoticeWishes};
use crate::file::{Delegated, File, FileState, Holder, Notices};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::{Caller, Client, DelegationKind, Engine, FileKey, Result, Share, Stateid};

/// A request for the delegation of a directory.
#[derive(Clone, Copy)]
pub struct DirectoryRequest<'a> {
    /// The client.
    pub client: &'a Arc<Client>,
    /// The principal and the origin of the request.
    pub caller: Caller,
    /// The directory.
    pub directory: FileKey,
    /// The directory above it. Changes there may move the directory, or complete it after it was
    /// made.
    pub parent: FileKey,
    /// The credentials of the user whose rights were checked.
    pub user: &'a Arc<Cred<Disk>>,
    /// The policy of the export.
    pub policy: &'static dyn DirectoryPolicy,
    /// The notifications that the client gets of changes of names; none if each change recalls the
    /// delegation.
    pub notices: Option<NoticeWishes>,
}

/// The reason why a directory was not delegated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoDirectory {
    /// The export, or the rights of the caller, do not allow it.
    Export,
    /// The policy does not want it now.
    Policy,
    /// The client has a delegation of the directory already.
    Held,
    /// The directory is being changed, its delegations are being recalled, a change that was told
    /// to come back has yet to do so, or the directory is also used through another export.
    Contention,
    /// The client cannot be called back.
    Callbacks,
    /// The server has as many delegations as its bounds allow, or grants none.
    Resource,
}

impl NoDirectory {
    /// All reasons, in the order of [`crate::Totals::directories_refused`].
    pub const ALL: [Self; 6] =
        [Self::Export, Self::Policy, Self::Held, Self::Contention, Self::Callbacks, Self::Resource];

    /// Returns the name of the reason in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Export => "export",
            Self::Policy => "policy",
            Self::Held => "held",
            Self::Contention => "contention",
            Self::Callbacks => "callbacks",
            Self::Resource => "resource",
        }
    }
}

impl Engine {
    /// Grants a delegation of a directory. The caller's rights and the rules of the export must
    /// have been checked.
    ///
    /// # Errors
    /// [`NoDirectory`].
    pub fn delegate_directory(
        &self,
        now: Duration,
        request: &DirectoryRequest<'_>,
    ) -> Result<Stateid, NoDirectory> {
        let granted = self.try_directory(now, request);
        match &granted {
            Ok(_) => self.counters.directories_granted.add(1),
            Err(why) => self.refuse_directory(*why),
        }
        granted
    }

    /// Returns the number of changes of a directory that are under way. A change adds one before
    /// delegations of the directory are recalled for it, and takes it away when it is done, both in
    /// sequentially consistent order. While the number is not zero the directory is not delegated.
    #[must_use]
    pub fn changes_under_way(&self, directory: &FileKey) -> &AtomicUsize {
        self.changes.of(directory)
    }

    /// Notes that a client has looked into a directory, for the policies. Clients such as Linux ask
    /// for a delegation once, and do not repeat a request that was refused.
    pub fn note_look(&self, now: Duration, client: &Client, directory: &FileKey) {
        self.history.note(client.id, directory, |seen| seen.ask(now));
    }

    /// Counts a request for a directory that was refused for a reason outside of the engine.
    pub fn refuse_directory(&self, why: NoDirectory) {
        let counts = NoDirectory::ALL.iter().zip(&self.counters.directories_refused);
        counts.filter(|(reason, _)| **reason == why).for_each(|(_, count)| count.add(1));
    }

    fn try_directory(
        &self,
        now: Duration,
        request: &DirectoryRequest<'_>,
    ) -> Result<Stateid, NoDirectory> {
        let DirectoryRequest { client, directory, .. } = request;
        self.may_delegate_directories(client)?;
        let file = self.file(directory).map_err(|_| NoDirectory::Resource)?;
        let granted = self.check_directory(now, request, &file);
        let granted = granted.and_then(|()| self.hold_directory(now, request, &file));
        if granted.is_ok() {
            self.history.note(client.id, directory, |seen| seen.grant(now));
        }
        self.files.let_go(now, &file);
        granted
    }

    fn may_delegate_directories(&self, client: &Client) -> Result<(), NoDirectory> {
        let limit = self.settings.limits.delegations;
        let is_full = self.files.delegations.load(Ordering::Acquire) >= limit;
        if !self.settings.delegations || is_full {
            return Err(NoDirectory::Resource);
        }
        if client.has_callbacks() { Ok(()) } else { Err(NoDirectory::Callbacks) }
    }

    /// Asks the policy, unless the client has the directory already: such a request says nothing
    /// about the client's need.
    fn check_directory(
        &self,
        now: Duration,
        request: &DirectoryRequest<'_>,
        file: &File,
    ) -> Result<(), NoDirectory> {
        let DirectoryRequest { client, directory, policy, .. } = request;
        if file.state().delegations.of(client.id).is_some() {
            return Err(NoDirectory::Held);
        }
        let seen = self.history.note(client.id, directory, |seen| seen.ask(now));
        if policy.grants(now, &seen) { Ok(()) } else { Err(NoDirectory::Policy) }
    }

    /// Adds the delegation, and takes it back if the directory is being changed. The file stays
    /// locked meanwhile, so that nobody recalls a delegation that the client never hears of.
    fn hold_directory(
        &self,
        now: Duration,
        request: &DirectoryRequest<'_>,
        file: &Arc<File>,
    ) -> Result<Stateid, NoDirectory> {
        let mut state = request.client.live().map_err(|_| NoDirectory::Resource)?;
        let mut on_file = file.state();
        if on_file.delegations.of(request.client.id).is_some() {
            return Err(NoDirectory::Held);
        }
        let is_wanted = on_file.is_recalled() || self.waiting.are_for(now, &file.key);
        if file.key.export != request.directory.export || is_wanted {
            return Err(NoDirectory::Contention);
        }
        let what = StateKind::Delegation(DelegationState {
            kind: DelegationKind::Directory,
            principal: request.caller.principal,
            user: Some(Arc::clone(request.user)),
            access: Share::READ,
            grantee: None,
        });
        let number = state.holdings.insert(&self.settings.limits, (now, file), what);
        let number = number.map_err(|_| NoDirectory::Resource)?;
        let stateid = Stateid::new(request.client.id, number, 1);
        let holder = Holder { client: request.client.id, state: number };
        let notices = request.notices.map(Notices::new);
        let notices = notices.map(|notices| Box::new(notices.judged_by(request.policy)));
        let delegated = Delegated::new(DelegationKind::Directory, stateid, notices);
        self.watch_children(file, (holder, &delegated));
        on_file.delegations.insert(holder, delegated);
        // A change that begins after this sees the delegation. One that began before is seen here.
        self.files.delegations.fetch_add(1, Ordering::SeqCst);
        if self.is_changing(request) {
            self.drop_delegation(file, &mut on_file, holder);
            state.holdings.remove(number);
            return Err(NoDirectory::Contention);
        }
        Ok(stateid)
    }

    fn is_changing(&self, request: &DirectoryRequest<'_>) -> bool {
        [&request.directory, &request.parent].iter().any(|key| self.changes.are_under_way(key))
    }
}

impl FileState {
    fn is_recalled(&self) -> bool {
        self.delegations.iter().any(|(_, delegated)| delegated.recall.is_some())
    }
}
