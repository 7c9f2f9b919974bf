//! Locks of NLM hosts and NFSv4 clients in one file, compared with a model that has a cell for each
//! byte.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, Caller, ChannelAttrs, Claim, Client, ClientOwner, CreateSession, DelegationWish,
    Engine, ExchangeId, FileKey, HostLock, Lock, LockRefusal, LockRequestKind, LockType, Locker,
    Open, Origin, Principal, Recovered, Sender, Settings, Share, Stateid, Verifier,
};
use comity_vfs::Handle;
use introduction::session_of;
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(10);
const CELLS: usize = 12;
const HOSTS: usize = 2;
/// Two owners of each host, and one of the NFSv4 client.
const OWNERS: usize = 2 * HOSTS + 1;
const CLIENT: usize = OWNERS - 1;

fn file() -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[1]).unwrap() }
}

fn caller() -> Caller {
    Caller { principal: Principal(0), origin: Origin::from_bytes([9; 16]) }
}

/// The NFSv4 client and its open of the file.
fn client(engine: &Engine) -> (Arc<Client>, Stateid) {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: b"client"[..].into() };
    let args = ExchangeId { owner, caller: caller(), update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let attrs = ChannelAttrs {
        request_bytes_max: 4096,
        response_bytes_max: 4096,
        response_cached_bytes_max: 1024,
        operations_max: 8,
        requests_max: 2,
    };
    let args = CreateSession { back_wanted: false, ..session_of(&known, (caller(), 1), attrs) };
    let session = engine.create_session(NOW, &args).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.reclaim_complete(NOW, &client, caller()).unwrap();
    let open = Open {
        client: &client,
        caller: caller(),
        owner: b"opener",
        file: file(),
        share: Share::access(Share::BOTH),
        claim: Claim::New,
        wish: DelegationWish::None,
        user: None,
        grantee: None,
        empties: false,
    };
    let stateid = engine.open(NOW, &open).unwrap().stateid;
    (client, stateid)
}

/// A random step.
#[derive(Debug, Clone)]
enum Step {
    Lock {
        owner: usize,
        range: ByteRange,
        kind: LockType,
    },
    Unlock {
        owner: usize,
        range: ByteRange,
    },
    /// The server forgets a host with all its owners.
    Forget {
        host: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let range = || {
        (0..CELLS as u64, 0..CELLS as u64)
            .prop_map(|(a, b)| ByteRange { first: a.min(b), last: a.max(b) })
    };
    let kind = prop_oneof![Just(LockType::Read), Just(LockType::Write)];
    prop_oneof![
        6 => (0..OWNERS, range(), kind)
            .prop_map(|(owner, range, kind)| Step::Lock { owner, range, kind }),
        4 => (0..OWNERS, range()).prop_map(|(owner, range)| Step::Unlock { owner, range }),
        1 => (0..HOSTS).prop_map(|host| Step::Forget { host }),
    ]
}

struct World {
    engine: Engine,
    client: Arc<Client>,
    open: Stateid,
    lock: Option<Stateid>,
    cells: [[Option<LockType>; OWNERS]; CELLS],
}

impl World {
    fn new() -> Self {
        let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
        let (client, open) = client(&engine);
        Self { engine, client, open, lock: None, cells: Default::default() }
    }

    fn host(&self, owner: usize) -> Arc<Client> {
        let name = [(owner / 2) as u8];
        self.engine.host(NOW, &name, Origin::from_bytes([owner as u8 / 2; 16])).unwrap()
    }

    /// Returns whether an owner may lock in the model.
    fn may(&self, owner: usize, range: ByteRange, kind: LockType) -> bool {
        let write = |held| held == LockType::Write || kind == LockType::Write;
        let stands = |cell: &[Option<LockType>; OWNERS]| {
            let others = cell.iter().enumerate().filter(|(other, _)| *other != owner);
            others.filter_map(|(_, held)| *held).any(write)
        };
        !self.cells[range.first as usize..=range.last as usize].iter().any(stands)
    }

    fn set(&mut self, owner: usize, range: ByteRange, kind: Option<LockType>) {
        let cells = &mut self.cells[range.first as usize..=range.last as usize];
        cells.iter_mut().for_each(|cell| cell[owner] = kind);
    }

    fn perform(&mut self, step: &Step) {
        match *step {
            Step::Lock { owner, range, kind } => {
                let may = self.may(owner, range, kind);
                let locked = self.lock(owner, range, kind);
                let denied = matches!(locked, Err(LockRefusal::Denied { .. }));
                assert_eq!((locked.is_ok(), denied), (may, !may), "{locked:?}");
                if may {
                    self.set(owner, range, Some(kind));
                }
            }
            Step::Unlock { owner, range } => {
                self.unlock(owner, range);
                self.set(owner, range, None);
            }
            Step::Forget { host } => {
                self.engine.forget_host(NOW, &[host as u8]);
                let whole = ByteRange { first: 0, last: CELLS as u64 - 1 };
                (2 * host..2 * host + 2).for_each(|owner| self.set(owner, whole, None));
            }
        }
        self.check();
    }

    fn lock(&mut self, owner: usize, range: ByteRange, kind: LockType) -> Result<(), LockRefusal> {
        if owner != CLIENT {
            let name = [owner as u8];
            let lock = HostLock { owner: &name, file: file(), range, kind };
            let host = self.host(owner);
            return self
                .engine
                .lock_host(NOW, &host, &lock, LockRequestKind::NonBlocking)
                .map(drop_count);
        }
        let locker = match self.lock {
            Some(lock) => Locker::Known { lock },
            None => Locker::New { open: self.open, owner: b"locker", seqid: 0 },
        };
        let args = Lock { file: file(), range, kind, reclaim: false, wait: false, locker };
        let lock = self.engine.lock(Sender::of(NOW, &self.client), &args)?;
        self.lock = Some(lock);
        Ok(())
    }

    fn unlock(&mut self, owner: usize, range: ByteRange) {
        if owner != CLIENT {
            let name = [owner as u8];
            let lock = HostLock { owner: &name, file: file(), range, kind: LockType::Write };
            self.engine.unlock_host(NOW, &self.host(owner), &lock).unwrap();
        } else if let Some(lock) = self.lock {
            let sender = Sender::of(NOW, &self.client);
            self.lock = Some(self.engine.unlock(sender, &lock, (&file(), range)).unwrap());
        }
    }

    /// Asserts that the locks of all owners are those of the model, byte by byte.
    fn check(&self) {
        let range = ByteRange { first: 0, last: CELLS as u64 - 1 };
        let (count, parts) = self.engine.held(&file(), range, 1000);
        assert_eq!(count == 0, self.cells.iter().flatten().all(Option::is_none));
        if count == 0 {
            return;
        }
        for (at, cell) in self.cells.iter().enumerate() {
            let is_here =
                |part: &&(ByteRange, _)| part.0.first <= at as u64 && at as u64 <= part.0.last;
            let held = parts.iter().find(is_here).unwrap().1;
            assert_eq!(held, cell.iter().copied().flatten().max(), "byte {at}: {parts:?}");
        }
    }
}

/// Ignores the number of ranges, which [`World::check`] checks.
fn drop_count(_: usize) {}

proptest! {
    #[test]
    fn hosts_and_clients_lock_bytes_as_the_model_does(
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.perform(step));
        (0..HOSTS).for_each(|host| world.perform(&Step::Forget { host }));
        world.engine.evict(NOW, &world.client);
        // A file that only ended state refers to is forgotten by the next tick.
        world.engine.tick(NOW);
        let census = world.engine.census();
        prop_assert_eq!((census.locks, census.states, census.owners), (0, 0, 0));
        prop_assert_eq!((census.files, census.held_bytes, census.clients), (0, 0, 0));
    }
}
