use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{Stateid4, share};
use comity_vfs::{DelegationKind, DelegationNumber, OpenAccess};

use super::lock_states::LockState;
use crate::compound::{OpenOwner, share_bits};
use crate::server_handle::ServerHandle;

/// An open: of a file, by the number of its open-owner.
pub(super) type OpenKey = (ServerHandle, u32);

/// The files of which the client holds state at the server.
#[derive(Debug, Default)]
pub(super) struct FileStates {
    pub(super) files: HashMap<ServerHandle, FileState>,
    /// Opens of callers, by number.
    pub(super) holds: HashMap<u64, Hold>,
    last_hold: u64,
    last_delegation: u64,
    /// Opens that may be idle from a time on.
    pub(super) idle: BTreeSet<(Duration, u64)>,
    /// The keys of [`FileStates::idle`], by number.
    idle_keys: HashMap<u64, OpenKey>,
    last_idle: u64,
    /// Uses of files so far.
    pub(super) uses: u64,
    /// Delegations that are held.
    pub(super) delegations: usize,
}

/// The state of one file.
#[derive(Debug, Default)]
pub(super) struct FileState {
    /// Opens by the number of the open-owner.
    pub(super) opens: BTreeMap<u32, OpenState>,
    pub(super) delegation: Option<HeldDelegation>,
    /// Locks by the numbers of open-owner and lock-owner.
    pub(super) locks: BTreeMap<(u32, u64), LockState>,
}

/// The open of a file by one open-owner.
#[derive(Debug)]
pub(super) struct OpenState {
    pub(super) owner: Arc<OpenOwner>,
    /// `None` if it is not open at the server.
    pub(super) stateid: Option<Stateid4>,
    /// The access for which it is open at the server.
    pub(super) access: u32,
    /// Callers' opens for reading and for writing.
    holds: [u32; 2],
    /// The access that the server has let the owner have since the file was delegated.
    pub(super) judged: u32,
    /// The access that the server refused when the client wanted to open on its own.
    pub(super) refused: u32,
    /// The time of the last use.
    pub(super) used: Duration,
    /// True while an operation on this open is under way.
    pub(super) is_busy: bool,
    /// True if the server has lost what callers hold: calls fail until they have closed.
    pub(super) is_lost: bool,
    /// True if the server tells when a lock may be free.
    pub(super) notifies_locks: bool,
}

/// The open of a caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) key: OpenKey,
    pub(super) access: OpenAccess,
}

/// A delegation.
#[derive(Debug)]
pub(super) struct HeldDelegation {
    pub(super) stateid: Stateid4,
    pub(super) kind: DelegationKind,
    pub(super) owner: Arc<OpenOwner>,
    /// The time of the recall.
    pub(super) recalled: Option<Duration>,
    /// True while it is being given back.
    pub(super) is_returning: bool,
    /// True once DELEGRETURN was sent.
    pub(super) is_sent: bool,
    /// Its number among all that were held.
    pub(super) number: u64,
    /// The number of the grant, if it is a delegation of a directory.
    pub(super) grant: Option<DelegationNumber>,
    /// The number of its last use.
    pub(super) used: u64,
    /// The length of the file with data that is kept from the server.
    pub(super) unwritten: Option<u64>,
    /// The size when data was last written, and the change attribute when it was granted, if they
    /// are known.
    pub(super) known: Option<(u64, u64)>,
    /// Requests of callers that wait until it is given back.
    pub(super) waiters: Vec<u64>,
}

/// The state under which data can be read or written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IoState {
    /// This one.
    Shown(Stateid4),
    /// It must be opened first.
    Closed,
    /// An operation on the open must end first.
    Busy,
    /// The server has refused to open it; it may read or write it all the same.
    Anonymous,
    /// It is lost.
    Lost,
}

impl OpenState {
    pub(super) const fn new(owner: Arc<OpenOwner>) -> Self {
        Self {
            owner,
            stateid: None,
            access: 0,
            holds: [0; 2],
            judged: 0,
            refused: 0,
            used: Duration::ZERO,
            is_busy: false,
            is_lost: false,
            notifies_locks: false,
        }
    }

    /// The access that callers hold.
    pub(super) const fn held(&self) -> u32 {
        (if self.holds[0] > 0 { share::READ } else { 0 })
            | (if self.holds[1] > 0 { share::WRITE } else { 0 })
    }

    fn count(&mut self, access: OpenAccess, change: impl Fn(u32) -> u32) {
        let [readers, writers] = &mut self.holds;
        if access.reads() {
            *readers = change(*readers);
        }
        if access.writes() {
            *writers = change(*writers);
        }
    }

    /// Returns whether it is open at the server for an access.
    pub(super) const fn is_open_for(&self, access: u32) -> bool {
        self.stateid.is_some() && self.access & access == access
    }
}

impl HeldDelegation {
    pub(super) const fn new(
        stateid: Stateid4,
        kind: DelegationKind,
        owner: Arc<OpenOwner>,
    ) -> Self {
        Self {
            stateid,
            kind,
            owner,
            recalled: None,
            is_returning: false,
            is_sent: false,
            number: 0,
            grant: None,
            used: 0,
            unwritten: None,
            known: None,
            waiters: Vec::new(),
        }
    }

    /// A delegation of a directory: nobody else changes it.
    pub(super) fn of_directory(
        stateid: Stateid4,
        owner: Arc<OpenOwner>,
        grant: DelegationNumber,
    ) -> Self {
        let held = Self::new(stateid, DelegationKind::Read, owner);
        Self { grant: Some(grant), ..held }
    }

    /// Returns whether it gives an access.
    pub(super) const fn gives(&self, access: u32) -> bool {
        match self.kind {
            DelegationKind::Read => access & share::WRITE == 0,
            DelegationKind::Write => true,
        }
    }

    /// Returns whether files may be opened under it without asking.
    pub(super) const fn is_good(&self) -> bool {
        self.recalled.is_none() && !self.is_returning
    }
}

impl FileState {
    fn is_empty(&self) -> bool {
        self.opens.is_empty() && self.delegation.is_none() && self.locks.is_empty()
    }

    fn stateids(&self) -> Vec<Stateid4> {
        let opens = self.opens.values().filter_map(|open| open.stateid);
        let locks = self.locks.values().filter_map(|locks| locks.stateid);
        let delegation = self.delegation.iter().map(|held| held.stateid);
        opens.chain(locks).chain(delegation).collect()
    }

    /// The state under which an owner reads or writes.
    fn io(&self, owner: u32, access: u32) -> IoState {
        let open = self.opens.get(&owner);
        if open.is_some_and(|open| open.is_lost) {
            return IoState::Lost;
        }
        let delegation = self.delegation.as_ref().filter(|held| !held.is_sent);
        if let Some(delegation) = delegation.filter(|held| held.gives(access)) {
            return IoState::Shown(delegation.stateid);
        }
        match open {
            Some(open) => match open.stateid.filter(|_| open.is_open_for(access)) {
                // The newest of this state, whichever it is (RFC 8881, 8.2.2).
                Some(stateid) => IoState::Shown(Stateid4 { seqid: 0, ..stateid }),
                None if open.is_busy => IoState::Busy,
                None if open.refused & access == access => IoState::Anonymous,
                None => IoState::Closed,
            },
            None => IoState::Closed,
        }
    }
}

impl FileStates {
    /// The state under which a file is read or written. A delegation counts as used.
    pub(super) fn io(&mut self, now: Duration, key: &OpenKey, access: OpenAccess) -> IoState {
        self.uses += 1;
        let Some(file) = self.files.get_mut(&key.0) else { return IoState::Closed };
        let found = file.io(key.1, share_bits(access));
        if let Some(delegation) = &mut file.delegation {
            delegation.used = self.uses;
        }
        if let Some(open) = file.opens.get_mut(&key.1) {
            open.used = now;
        }
        found
    }

    /// The state that a file has, if any, for an attribute that is set.
    pub(super) fn any(&self, key: &OpenKey, access: OpenAccess) -> Stateid4 {
        let found = self.files.get(&key.0).map(|file| file.io(key.1, share_bits(access)));
        match found {
            Some(IoState::Shown(stateid)) => stateid,
            _ => Stateid4::ANONYMOUS,
        }
    }

    /// The open of an owner.
    pub(super) fn open(&self, key: &OpenKey) -> Option<&OpenState> {
        self.files.get(&key.0)?.opens.get(&key.1)
    }

    /// The open of an owner, for a change.
    pub(super) fn open_mut(&mut self, key: &OpenKey) -> Option<&mut OpenState> {
        self.files.get_mut(&key.0)?.opens.get_mut(&key.1)
    }

    /// The open of an owner, made if there is none.
    pub(super) fn open_of(
        &mut self,
        file: &ServerHandle,
        owner: &Arc<OpenOwner>,
    ) -> &mut OpenState {
        let file = self.files.entry(*file).or_default();
        file.opens.entry(owner.id).or_insert_with(|| OpenState::new(Arc::clone(owner)))
    }

    /// The delegation of a file.
    pub(super) fn delegation(&self, file: &ServerHandle) -> Option<&HeldDelegation> {
        self.files.get(file)?.delegation.as_ref()
    }

    /// The delegation of a file, for a change.
    pub(super) fn delegation_mut(&mut self, file: &ServerHandle) -> Option<&mut HeldDelegation> {
        self.files.get_mut(file)?.delegation.as_mut()
    }

    /// Counts an open of a caller's; returns its number.
    pub(super) fn hold(&mut self, key: OpenKey, access: OpenAccess) -> u64 {
        if let Some(open) = self.open_mut(&key) {
            open.count(access, |count| count.saturating_add(1));
        }
        self.last_hold += 1;
        self.holds.insert(self.last_hold, Hold { key, access });
        self.last_hold
    }

    /// The open of a caller's.
    pub(super) fn held(&self, number: u64) -> Option<Hold> {
        self.holds.get(&number).copied()
    }

    /// A caller has closed; returns the open, and whether it was lost.
    pub(super) fn let_go(&mut self, number: u64) -> Option<(Hold, bool)> {
        let hold = self.holds.remove(&number)?;
        let Some(open) = self.open_mut(&hold.key) else { return Some((hold, false)) };
        open.count(hold.access, |count| count.saturating_sub(1));
        let was_lost = open.is_lost;
        open.is_lost &= open.held() != 0;
        Some((hold, was_lost))
    }

    /// Has an open looked at at a time, to see whether it is idle.
    pub(super) fn watch(&mut self, at: Duration, key: OpenKey) {
        self.last_idle += 1;
        self.idle.insert((at, self.last_idle));
        self.idle_keys.insert(self.last_idle, key);
    }

    /// The open that is to be looked at now.
    pub(super) fn next_idle(&mut self, now: Duration) -> Option<OpenKey> {
        let first = *self.idle.first().filter(|(at, _)| *at <= now)?;
        self.idle.remove(&first);
        self.idle_keys.remove(&first.1)
    }

    /// Holds a delegation of a file; it takes the place of an earlier one.
    pub(super) fn hold_delegation(&mut self, file: ServerHandle, mut held: HeldDelegation) {
        self.uses += 1;
        held.used = self.uses;
        let before = self.files.entry(file).or_default().delegation.replace(held);
        self.delegations += usize::from(before.is_none());
        self.number_delegation(&file);
    }

    /// Gives the delegation of a file a number that none had before.
    pub(super) fn number_delegation(&mut self, file: &ServerHandle) {
        self.last_delegation += 1;
        let number = self.last_delegation;
        if let Some(held) = self.delegation_mut(file) {
            held.number = number;
        }
    }

    /// Takes away the delegation of a file.
    pub(super) fn take_delegation(&mut self, file: &ServerHandle) -> Option<HeldDelegation> {
        let state = self.files.get_mut(file)?;
        let held = state.delegation.take()?;
        self.delegations -= 1;
        state.opens.values_mut().for_each(|open| open.judged = 0);
        Some(held)
    }

    /// Forgets which opens of a file the server has allowed: its mode or its owner has changed.
    pub(super) fn forget_judged(&mut self, file: &ServerHandle) {
        if let Some(state) = self.files.get_mut(file) {
            state.opens.values_mut().for_each(|open| open.judged = 0);
        }
    }

    /// Forgets the locks of an open.
    pub(super) fn forget_locks(&mut self, key: &OpenKey) {
        if let Some(state) = self.files.get_mut(&key.0) {
            state.locks.retain(|(owner, _), _| *owner != key.1);
        }
    }

    /// All stateids.
    pub(super) fn stateids(&self) -> Vec<Stateid4> {
        self.files.values().flat_map(FileState::stateids).collect()
    }

    /// The files of these stateids, by what does not change of a stateid.
    pub(super) fn files_of(&self, stateids: &[Stateid4]) -> HashMap<[u8; 12], ServerHandle> {
        let wanted: HashSet<[u8; 12]> = stateids.iter().map(|stateid| stateid.other).collect();
        let all = self.files.iter().flat_map(|(file, state)| {
            state.stateids().into_iter().map(|stateid| (stateid.other, *file))
        });
        all.filter(|(other, _)| wanted.contains(other)).collect()
    }

    /// Forgets what is of no use any more.
    pub(super) fn tidy(&mut self, file: &ServerHandle) {
        let Some(state) = self.files.get_mut(file) else { return };
        let is_delegated = state.delegation.is_some();
        // Under a delegation it is remembered whom the server let in.
        state.opens.retain(|_, open| {
            open.stateid.is_some()
                || open.is_busy
                || open.held() != 0
                || open.refused != 0
                || (is_delegated && open.judged != 0)
        });
        if state.is_empty() {
            self.files.remove(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    fn owner(id: u32) -> Arc<OpenOwner> {
        Arc::new(OpenOwner { id, credential: Vec::new() })
    }

    fn file() -> ServerHandle {
        ServerHandle::new(b"file").unwrap()
    }

    fn stateid(byte: u8) -> Stateid4 {
        Stateid4 { seqid: 3, other: [byte; 12] }
    }

    fn delegation(kind: DelegationKind) -> HeldDelegation {
        HeldDelegation::new(stateid(9), kind, owner(1))
    }

    #[test]
    fn data_is_read_under_an_open_of_its_owner_with_the_right_access() {
        let mut states = FileStates::default();
        let key = (file(), 1);
        assert_eq!(states.io(NOW, &key, OpenAccess::Read), IoState::Closed);
        let open = states.open_of(&file(), &owner(1));
        (open.stateid, open.access) = (Some(stateid(7)), share::READ);
        let newest = Stateid4 { seqid: 0, ..stateid(7) };
        assert_eq!(states.io(NOW, &key, OpenAccess::Read), IoState::Shown(newest));
        assert_eq!(states.io(NOW, &key, OpenAccess::Write), IoState::Closed);
        assert_eq!(states.io(NOW, &(file(), 2), OpenAccess::Read), IoState::Closed);
        states.open_mut(&key).unwrap().is_busy = true;
        assert_eq!(states.io(NOW, &key, OpenAccess::Write), IoState::Busy);
        states.open_mut(&key).unwrap().is_busy = false;
        states.open_mut(&key).unwrap().refused = share::WRITE;
        assert_eq!(states.io(NOW, &key, OpenAccess::Write), IoState::Anonymous);
        states.open_mut(&key).unwrap().is_lost = true;
        assert_eq!(states.io(NOW, &key, OpenAccess::Read), IoState::Lost);
    }

    #[test]
    fn a_delegation_serves_all_owners_until_it_is_sent_back() {
        let mut states = FileStates::default();
        states.hold_delegation(file(), delegation(DelegationKind::Read));
        let key = (file(), 5);
        assert_eq!(states.io(NOW, &key, OpenAccess::Read), IoState::Shown(stateid(9)));
        assert_eq!(states.io(NOW, &key, OpenAccess::Write), IoState::Closed);
        states.delegation_mut(&file()).unwrap().is_sent = true;
        assert_eq!(states.io(NOW, &key, OpenAccess::Read), IoState::Closed);
    }

    #[test]
    fn states_that_callers_hold_are_counted() {
        let mut states = FileStates::default();
        let key = (file(), 1);
        states.open_of(&file(), &owner(1));
        let one = states.hold(key, OpenAccess::Read);
        let two = states.hold(key, OpenAccess::Both);
        assert_eq!(states.open(&key).unwrap().held(), share::BOTH);
        states.open_mut(&key).unwrap().is_lost = true;
        assert!(states.let_go(two).unwrap().1);
        assert_eq!(states.open(&key).unwrap().held(), share::READ);
        assert!(states.open(&key).unwrap().is_lost, "others still hold it");
        states.let_go(one);
        assert!(!states.open(&key).unwrap().is_lost);
        assert!(states.let_go(one).is_none());
        states.tidy(&file());
        assert!(states.files.is_empty());
    }
}
