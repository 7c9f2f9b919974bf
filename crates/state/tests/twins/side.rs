//! One engine and its clients. Every answer is a text.

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    Claim, Delegation, DelegationWish, Effect, Engine, Error, FileKey, HostLock, Lock,
    LockRequestKind, LockType, Locker, Open, Opened, Recovered, Sender, SeqidCheck, Sequenced,
    Settings, Share,
};
use comity_vfs::Handle;

use crate::person::{Person, caller};
use crate::step::{FILES, HOST, OLD, PEOPLE, Place, Step};

pub(super) type Time = Duration;
pub(super) const VOLUME: u64 = 1;
const OWNER_NAMES: [&[u8]; 2] = [b"one", b"two"];

pub(super) struct Side {
    pub(super) engine: Engine,
    pub(super) now: Time,
    pub(super) people: Vec<Person>,
}

pub(super) fn settings(boot: u32, secret: u8) -> Settings {
    let mut settings = Settings::new(boot, [secret; 16]);
    settings.courtesy = Duration::from_secs(300);
    settings
}

pub(super) fn key(file: usize) -> FileKey {
    FileKey { volume: VOLUME, export: 1, handle: Handle::new(&[file as u8 + 1]).unwrap() }
}

fn kind(write: bool) -> LockType {
    if write { LockType::Write } else { LockType::Read }
}

impl Side {
    pub(super) fn new() -> Self {
        let now = Duration::from_secs(1000);
        let engine = Engine::new(now, settings(1, 1), Recovered::new());
        let people = (0..PEOPLE).map(|who| Person::arrive(&engine, now, who, 0)).collect();
        let mut side = Self { engine, now, people };
        (0..PEOPLE).for_each(|who| side.settle(who));
        side
    }

    /// Returns whether the engine does not know a client any more.
    pub(super) fn has_lost(&self, who: usize) -> bool {
        self.engine.client_by_id(self.people[who].client.id()).is_none()
    }

    pub(super) fn arrive(&mut self, who: usize, life: u8) {
        self.people[who] = Person::arrive(&self.engine, self.now, who, life);
        self.settle(who);
    }

    /// Gives a client state of a file that no other client uses, so that it always moves.
    fn settle(&mut self, who: usize) {
        if who == HOST {
            let home = Place { file: FILES + HOST, owner: 0, first: 0, last: 0, write: true };
            self.lock_host(home, false);
        } else {
            self.open(who, FILES + who, (Share::access(Share::READ), false));
        }
    }

    pub(super) fn perform(&mut self, step: Step) -> Vec<String> {
        let answer = match step {
            Step::Open { who, file, access, deny, delegation } => {
                self.request(who);
                self.open(who, file, (Share { access, deny }, delegation))
            }
            Step::Close { who, file } => self.close(who, file),
            Step::Lock { who: HOST, place, wait } => self.lock_host(place, wait),
            Step::Lock { who, place, wait } => self.lock(who, place, wait),
            Step::Unlock { who: HOST, place } => self.unlock_host(place),
            Step::Unlock { who, place } => self.unlock(who, place),
            Step::Cancel { place } => self.cancel(place),
            Step::Answer { known } => self.answer(known),
            Step::Return { who, file } => self.give_back(who, file),
            Step::Conflict { file } => {
                let write = Share::access(Share::WRITE);
                format!("{:?}", self.engine.break_delegations(self.now, None, &key(file), write))
            }
            Step::Again { who } => self.repeat(who),
            Step::Ahead { seconds } => self.ahead(seconds),
            Step::Move => String::new(),
        };
        let mut answers = vec![answer];
        answers.extend(self.effects());
        answers.extend(self.stateids());
        answers
    }

    fn sender(&self, who: usize) -> Sender<'_> {
        Sender::of(self.now, &self.people[who].client)
    }

    /// A new request of a client with a session, a RENEW, or any call of the host.
    pub(super) fn request(&mut self, who: usize) {
        if who == HOST {
            return drop(self.engine.known_host(self.now, b"host"));
        }
        let Some(request) = &mut self.people[who].request else {
            let id = self.people[who].client.id();
            return self.engine.renew(self.now, id, caller(who)).unwrap();
        };
        (request.seqid, request.digest) = (request.seqid + 1, request.digest + 1);
        let Ok(Sequenced::New(ticket)) = self.engine.sequence(self.now, request) else {
            panic!("not new")
        };
        ticket.answered(Some(format!("reply {}", request.digest).as_bytes()));
    }

    fn open(&mut self, who: usize, file: usize, (share, delegation): (Share, bool)) -> String {
        let turn = (who == OLD).then(|| {
            self.people[who].seqid += 1;
            let (client, seqid) = (&self.people[who].client, self.people[who].seqid);
            self.engine.open_turn((self.now, caller(who)), client, b"opener", seqid)
        });
        let turn = match turn.transpose() {
            Ok(turn) => turn,
            Err(error) => return format!("{error}"),
        };
        let opened = self.try_open(who, file, (share, delegation));
        let answer = format!("{opened:?}");
        if let Some(SeqidCheck::New(turn)) = turn {
            turn.answered(answer.as_bytes(), None);
        }
        opened.into_iter().for_each(|opened| self.note_open(who, file, &opened));
        answer
    }

    fn try_open(
        &self,
        who: usize,
        file: usize,
        (share, delegation): (Share, bool),
    ) -> Result<Opened, Error> {
        let (client, caller, claim) = (&self.people[who].client, caller(who), Claim::New);
        let wish = if delegation { DelegationWish::NoPreference } else { DelegationWish::None };
        let (owner, file, user, grantee) = (&b"opener"[..], key(file), None, None);
        let empties = false;
        let args = Open { client, caller, owner, file, share, claim, wish, user, grantee, empties };
        self.engine.open(self.now, &args)
    }

    fn note_open(&mut self, who: usize, file: usize, opened: &Opened) {
        let mut stateid = opened.stateid;
        if who == OLD {
            let shown = (self.sender(who), &key(file));
            stateid = self.engine.open_confirm(shown, &stateid).unwrap_or(stateid);
        }
        let believed = &mut self.people[who].of_files[file];
        believed.open = Some(stateid);
        if let Delegation::Granted { stateid, .. } = opened.delegation {
            believed.delegation = Some(stateid);
        }
    }

    fn close(&mut self, who: usize, file: usize) -> String {
        self.request(who);
        let Some(open) = self.people[who].of_files[file].open.take() else { return String::new() };
        self.people[who].of_files[file].locks = Default::default();
        let closed = self.engine.close((self.sender(who), &key(file)), &open);
        format!("{closed:?}")
    }

    fn lock(&mut self, who: usize, place: Place, wait: bool) -> String {
        self.request(who);
        let Place { file, owner, first, last, write } = place;
        let believed = &self.people[who].of_files[file];
        let seqid = self.people[who].lock_seqids[owner] + 1;
        let locker = match (believed.locks[owner], believed.open) {
            (Some(lock), _) => Locker::Known { lock },
            (None, Some(open)) => Locker::New { open, owner: OWNER_NAMES[owner], seqid },
            (None, None) => return String::new(),
        };
        let (range, file_key) = (comity_state::ByteRange { first, last }, key(file));
        let kind = kind(write);
        let args = Lock { file: file_key, range, kind, reclaim: false, wait, locker };
        let locked = self.engine.lock(self.sender(who), &args);
        if let Ok(lock) = locked {
            let is_new = matches!(locker, Locker::New { .. });
            self.people[who].lock_seqids[owner] += u32::from(is_new);
            self.people[who].of_files[file].locks[owner] = Some(lock);
        }
        format!("{locked:?}")
    }

    fn unlock(&mut self, who: usize, place: Place) -> String {
        self.request(who);
        let Place { file, owner, first, last, .. } = place;
        let Some(lock) = self.people[who].of_files[file].locks[owner] else {
            return String::new();
        };
        let range = comity_state::ByteRange { first, last };
        let left = self.engine.unlock(self.sender(who), &lock, (&key(file), range));
        if let Ok(left) = left {
            self.people[who].of_files[file].locks[owner] = Some(left);
        }
        format!("{left:?}")
    }

    fn lock_host(&self, place: Place, wait: bool) -> String {
        let request_kind =
            if wait { LockRequestKind::Blocking } else { LockRequestKind::NonBlocking };
        let (host, lock) = (&self.people[HOST].client, host_lock(place));
        let locked = self.engine.lock_host(self.now, host, &lock, request_kind);
        format!("{:?}", locked)
    }

    fn unlock_host(&self, place: Place) -> String {
        let host = &self.people[HOST].client;
        format!("{:?}", self.engine.unlock_host(self.now, host, &host_lock(place)))
    }

    fn cancel(&self, place: Place) -> String {
        self.engine.cancel_host(self.now, &self.people[HOST].client, &host_lock(place));
        String::new()
    }

    fn answer(&mut self, known: bool) -> String {
        let Some(lock) = self.people[HOST].granted.take() else { return String::new() };
        let host = &self.people[HOST].client;
        if known {
            self.engine.grant_known(host, &lock);
        } else {
            self.engine.withdraw_grant(self.now, host, &lock);
        }
        format!("{lock:?}")
    }

    fn give_back(&mut self, who: usize, file: usize) -> String {
        self.request(who);
        let Some(stateid) = self.people[who].of_files[file].delegation.take() else {
            return String::new();
        };
        let returned = self.engine.delegreturn((self.sender(who), &key(file)), &stateid);
        let freed = self.engine.free_stateid(self.sender(who), &stateid);
        format!("{returned:?} {freed:?}")
    }

    fn repeat(&self, who: usize) -> String {
        let person = &self.people[who];
        if let Some(request) = &person.request {
            return match self.engine.sequence(self.now, request) {
                Ok(Sequenced::Again(reply)) => format!("{reply:?}"),
                Ok(_) => "other".into(),
                Err(error) => format!("{error}"),
            };
        }
        let caller = (self.now, caller(who));
        match self.engine.open_turn(caller, &person.client, b"opener", person.seqid) {
            Ok(SeqidCheck::Again(reply)) => format!("{reply:?}"),
            Ok(SeqidCheck::New(_)) => "new".into(),
            Err(error) => format!("{error}"),
        }
    }

    fn ahead(&mut self, seconds: u64) -> String {
        self.now += Duration::from_secs(seconds);
        self.engine.tick(self.now);
        String::new()
    }

    /// Sends what the engine wants to tell clients; returns it. The engine looks at files whose
    /// time has come in the order of a hash table, so the messages are sorted by file.
    pub(super) fn effects(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            let mut effects: Vec<_> = std::iter::from_fn(|| self.engine.poll_effect()).collect();
            if effects.is_empty() {
                return sent;
            }
            effects.sort_by_key(file_of);
            effects.into_iter().for_each(|effect| sent.extend(self.send(effect)));
        }
    }

    fn send(&mut self, effect: Effect) -> Vec<String> {
        match effect {
            Effect::Recall { client, stateid, .. } => {
                self.engine.recall_sent(self.now, &client, &stateid);
                vec![format!("recall {stateid:?}")]
            }
            Effect::NotifyLock { client, owner, file, range, kind } => {
                let who = self.people.iter().position(|it| Arc::ptr_eq(&it.client, &client));
                let said = format!("notify {who:?} {owner:?} {:?} {range} {kind:?}", file.handle);
                let is_host = who == Some(HOST);
                let taken = is_host.then(|| self.take_offer(&owner, (file, range, kind)));
                std::iter::once(said).chain(taken).collect()
            }
            // A new channel is probed, and a move makes one.
            Effect::Probe { .. } => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    /// Takes a lock that was offered to the host, as the shell does before it sends NLM_GRANTED.
    fn take_offer(
        &mut self,
        owner: &[u8],
        (file, range, kind): (FileKey, comity_state::ByteRange, LockType),
    ) -> String {
        let owner = OWNER_NAMES.into_iter().find(|name| *name == owner).unwrap();
        let (host, lock) = (&self.people[HOST].client, HostLock { owner, file, range, kind });
        let taken = self.engine.lock_host(self.now, host, &lock, LockRequestKind::Offered);
        if taken.is_ok() {
            self.people[HOST].granted = Some(lock);
        }
        format!("{:?}", taken)
    }

    /// Returns whether each stateid can be used.
    fn stateids(&self) -> Vec<String> {
        let clients = 0..HOST;
        let of = |who: usize| (0..FILES).map(move |file| (who, file));
        let shown = clients.flat_map(of).flat_map(|(who, file)| {
            let stateids = self.people[who].of_files[file].stateids();
            stateids.map(move |stateid| {
                format!("{:?}", self.engine.test_stateid(self.sender(who), &stateid))
            })
        });
        shown.collect()
    }
}

fn file_of(effect: &Effect) -> Option<Vec<u8>> {
    match effect {
        Effect::Recall { file, .. } | Effect::NotifyLock { file, .. } => {
            Some(file.handle.bytes().to_vec())
        }
        _ => None,
    }
}

fn host_lock(place: Place) -> HostLock<'static> {
    let Place { file, owner, first, last, write } = place;
    let range = comity_state::ByteRange { first, last };
    HostLock { owner: OWNER_NAMES[owner], file: key(file), range, kind: kind(write) }
}
