use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use comity_proto::nfs4::{Stateid4, share};
use comity_vfs::{DelegationKind, DelegationNumber, OpenAccess};

use super::lock_states::LockState;
use crate::compound::{OpenOwner, share_bits};
use crate::server_handle::ServerHandle;

/// The key of an open: the file and the number of the open-owner.
pub(super) type OpenKey = (ServerHandle, u32);

/// The files for which the client holds state at the server.
#[derive(Debug, Default)]
pub(super) struct FileStates {
    pub(super) files: HashMap<ServerHandle, FileState>,
    /// Opens of callers, by number. Several may share one open at the server.
    pub(super) holds: HashMap<u64, Hold>,
    last_hold: u64,
    last_delegation: u64,
    /// When to check whether an open is idle: the time, and a key of `idle_keys`.
    pub(super) idle: BTreeSet<(Duration, u64)>,
    /// The keys of [`FileStates::idle`], by number.
    idle_keys: HashMap<u64, OpenKey>,
    last_idle: u64,
    /// Counter of uses, which orders delegations by their last use.
    pub(super) uses: u64,
    /// Number of delegations held.
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
    /// The stateid; `None` if it is not open at the server.
    pub(super) stateid: Option<Stateid4>,
    /// The share bits with which it is open at the server.
    pub(super) access: u32,
    /// Number of callers' opens for reading and for writing.
    holds: [u32; 2],
    /// The share bits that the server has allowed the owner since the file was delegated.
    pub(super) judged: u32,
    /// The share bits that the server refused when the client opened for a READ or WRITE.
    pub(super) refused: u32,
    /// The time of the last use.
    pub(super) used: Duration,
    /// True while an operation on this open is under way.
    pub(super) is_busy: bool,
    /// True if the server has lost the state of callers' opens: their calls fail until they close.
    pub(super) is_lost: bool,
    /// True if the server notifies this client when a lock may be free.
    pub(super) notifies_locks: bool,
}

/// The open of a caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) key: OpenKey,
    pub(super) access: OpenAccess,
}

/// A delegation that the client holds.
#[derive(Debug)]
pub(super) struct HeldDelegation {
    pub(super) stateid: Stateid4,
    pub(super) kind: DelegationKind,
    pub(super) owner: Arc<OpenOwner>,
    /// The time of the recall.
    pub(super) recalled: Option<Duration>,
    /// True while it is being returned.
    pub(super) is_returning: bool,
    /// True once DELEGRETURN was sent.
    pub(super) is_sent: bool,
    /// Its number; each delegation of this client has another one.
    pub(super) number: u64,
    /// The number of the grant, if it is a delegation of a directory.
    pub(super) grant: Option<DelegationNumber>,
    /// The value of the use counter at its last use.
    pub(super) used: u64,
    /// The size of the file, if modified data is still cached here.
    pub(super) unwritten: Option<u64>,
    /// The size after the last write to the server, and the change attribute at the grant, if they
    /// are known.
    pub(super) known: Option<(u64, u64)>,
    /// Requests of callers that wait until it is returned.
    pub(super) waiters: Vec<u64>,
}

/// The state with which data can be read or written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IoState {
    /// This stateid.
    Shown(Stateid4),
    /// None: the file must be opened first.
    Closed,
    /// None yet: an operation on the open must end first.
    Busy,
    /// The anonymous stateid, because the server refused the open; it may still allow the READ or
    /// WRITE.
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

    /// The share bits of all callers' opens.
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

    /// Returns whether it is open at the server with this access.
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

    /// Makes a delegation of a directory, which is always a read delegation.
    pub(super) fn of_directory(
        stateid: Stateid4,
        owner: Arc<OpenOwner>,
        grant: DelegationNumber,
    ) -> Self {
        let held = Self::new(stateid, DelegationKind::Read, owner);
        Self { grant: Some(grant), ..held }
    }

    /// Returns whether it allows an access.
    pub(super) const fn gives(&self, access: u32) -> bool {
        match self.kind {
            DelegationKind::Read => access & share::WRITE == 0,
            DelegationKind::Write => true,
        }
    }

    /// Returns whether files may be opened locally under it: it is neither recalled nor being
    /// returned.
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

    /// The state with which an owner reads or writes.
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
                // A seqid of 0 stands for the current one (RFC 8881, 8.2.2).
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
    /// The state with which a file is read or written. Counts as a use of its delegation.
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

    /// The stateid for a SETATTR: that of the file's state, or the anonymous one.
    pub(super) fn any(&self, key: &OpenKey, access: OpenAccess) -> Stateid4 {
        let found = self.files.get(&key.0).map(|file| file.io(key.1, share_bits(access)));
        match found {
            Some(IoState::Shown(stateid)) => stateid,
            _ => Stateid4::ANONYMOUS,
        }
    }

    /// Returns the open of an owner.
    pub(super) fn open(&self, key: &OpenKey) -> Option<&OpenState> {
        self.files.get(&key.0)?.opens.get(&key.1)
    }

    /// Returns the open of an owner, mutable.
    pub(super) fn open_mut(&mut self, key: &OpenKey) -> Option<&mut OpenState> {
        self.files.get_mut(&key.0)?.opens.get_mut(&key.1)
    }

    /// Returns the open of an owner; makes one if there is none.
    pub(super) fn open_of(
        &mut self,
        file: &ServerHandle,
        owner: &Arc<OpenOwner>,
    ) -> &mut OpenState {
        let file = self.files.entry(*file).or_default();
        file.opens.entry(owner.id).or_insert_with(|| OpenState::new(Arc::clone(owner)))
    }

    /// Returns the delegation of a file.
    pub(super) fn delegation(&self, file: &ServerHandle) -> Option<&HeldDelegation> {
        self.files.get(file)?.delegation.as_ref()
    }

    /// Returns the delegation of a file, mutable.
    pub(super) fn delegation_mut(&mut self, file: &ServerHandle) -> Option<&mut HeldDelegation> {
        self.files.get_mut(file)?.delegation.as_mut()
    }

    /// Adds an open of a caller; returns its number.
    pub(super) fn hold(&mut self, key: OpenKey, access: OpenAccess) -> u64 {
        if let Some(open) = self.open_mut(&key) {
            open.count(access, |count| count.saturating_add(1));
        }
        self.last_hold += 1;
        self.holds.insert(self.last_hold, Hold { key, access });
        self.last_hold
    }

    /// Returns an open of a caller.
    pub(super) fn held(&self, number: u64) -> Option<Hold> {
        self.holds.get(&number).copied()
    }

    /// Removes an open of a caller; returns it, and whether its state was lost.
    pub(super) fn let_go(&mut self, number: u64) -> Option<(Hold, bool)> {
        let hold = self.holds.remove(&number)?;
        let Some(open) = self.open_mut(&hold.key) else { return Some((hold, false)) };
        open.count(hold.access, |count| count.saturating_sub(1));
        let was_lost = open.is_lost;
        open.is_lost &= open.held() != 0;
        Some((hold, was_lost))
    }

    /// Schedules a check whether an open is idle.
    pub(super) fn watch(&mut self, at: Duration, key: OpenKey) {
        self.last_idle += 1;
        self.idle.insert((at, self.last_idle));
        self.idle_keys.insert(self.last_idle, key);
    }

    /// Returns the next open that is due for its check.
    pub(super) fn next_idle(&mut self, now: Duration) -> Option<OpenKey> {
        let first = *self.idle.first().filter(|(at, _)| *at <= now)?;
        self.idle.remove(&first);
        self.idle_keys.remove(&first.1)
    }

    /// Stores a delegation of a file, in place of an earlier one.
    pub(super) fn hold_delegation(&mut self, file: ServerHandle, mut held: HeldDelegation) {
        self.uses += 1;
        held.used = self.uses;
        let before = self.files.entry(file).or_default().delegation.replace(held);
        self.delegations += usize::from(before.is_none());
        self.number_delegation(&file);
    }

    /// Gives the delegation of a file a new number.
    pub(super) fn number_delegation(&mut self, file: &ServerHandle) {
        self.last_delegation += 1;
        let number = self.last_delegation;
        if let Some(held) = self.delegation_mut(file) {
            held.number = number;
        }
    }

    /// Removes the delegation of a file.
    pub(super) fn take_delegation(&mut self, file: &ServerHandle) -> Option<HeldDelegation> {
        let state = self.files.get_mut(file)?;
        let held = state.delegation.take()?;
        self.delegations -= 1;
        state.opens.values_mut().for_each(|open| open.judged = 0);
        Some(held)
    }

    /// Forgets which accesses of a file the server has allowed, because its mode or owner has
    /// changed.
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

    /// Returns all stateids.
    pub(super) fn stateids(&self) -> Vec<Stateid4> {
        self.files.values().flat_map(FileState::stateids).collect()
    }

    /// Finds the files of these stateids, by the part of a stateid that does not change.
    pub(super) fn files_of(&self, stateids: &[Stateid4]) -> HashMap<[u8; 12], ServerHandle> {
        let wanted: HashSet<[u8; 12]> = stateids.iter().map(|stateid| stateid.other).collect();
        let all = self.files.iter().flat_map(|(file, state)| {
            state.stateids().into_iter().map(|stateid| (stateid.other, *file))
        });
        all.filter(|(other, _)| wanted.contains(other)).collect()
    }

    /// Removes the entries of a file that hold no state.
    pub(super) fn tidy(&mut self, file: &ServerHandle) {
        let Some(state) = self.files.get_mut(file) else { return };
        let is_delegated = state.delegation.is_some();
        // Under a delegation, keep which owners the server has allowed to open the file.
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
    fn data_is_read_with_an_open_of_its_owner_that_has_the_access() {
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
    fn a_delegation_is_used_for_all_owners_until_it_is_returned() {
        let mut states = FileStates::default();
        states.hold_delegation(file(), delegation(DelegationKind::Read));
        let key = (file(), 5);
        assert_eq!(states.io(NOW, &key, OpenAccess::Read), IoState::Shown(stateid(9)));
        assert_eq!(states.io(NOW, &key, OpenAccess::Write), IoState::Closed);
        states.delegation_mut(&file()).unwrap().is_sent = true;
        assert_eq!(states.io(NOW, &key, OpenAccess::Read), IoState::Closed);
    }

    #[test]
    fn opens_of_callers_are_counted() {
        let mut states = FileStates::default();
        let key = (file(), 1);
        states.open_of(&file(), &owner(1));
        let one = states.hold(key, OpenAccess::Read);
        let two = states.hold(key, OpenAccess::Both);
        assert_eq!(states.open(&key).unwrap().held(), share::BOTH);
        states.open_mut(&key).unwrap().is_lost = true;
        assert!(states.let_go(two).unwrap().1);
        assert_eq!(states.open(&key).unwrap().held(), share::READ);
        assert!(states.open(&key).unwrap().is_lost, "another caller still has it open");
        states.let_go(one);
        assert!(!states.open(&key).unwrap().is_lost);
        assert!(states.let_go(one).is_none());
        states.tidy(&file());
        assert!(states.files.is_empty());
    }
}
