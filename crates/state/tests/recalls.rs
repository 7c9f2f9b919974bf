//! Delegations of one file and one directory, compared with a simple model: conflicts recall them,
//! and a recall without a return is followed by a revocation exactly at its deadline.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    Always, Caller, ChannelAttrs, Claim, Client, ClientOwner, ConnectionId, Delegation,
    DelegationKind, DelegationWish, Direction, DirectoryRequest, Effect, Engine, Error, ExchangeId,
    FileKey, NoDirectory, Open, Origin, Principal, Recovered, Sender, Settings, Share, Stateid,
    Verifier,
};
use comity_vfs::{Cred, Gid, Handle, Uid};
use introduction::session_of;
use proptest::prelude::*;

const CLIENTS: usize = 3;

fn file() -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[1]).unwrap() }
}

fn directory(number: u8) -> FileKey {
    FileKey { volume: 2, export: 1, handle: Handle::new(&[number]).unwrap() }
}

fn caller(client: usize) -> Caller {
    Caller { principal: Principal(0), origin: Origin::from_bytes([client as u8; 16]) }
}

fn client(engine: &Engine, now: Duration, number: usize) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: [number as u8].into() };
    let args = ExchangeId { owner, caller: caller(number), update: false };
    let known = engine.exchange_id(now, args).unwrap();
    let attrs = ChannelAttrs {
        request_bytes_max: 4096,
        response_bytes_max: 4096,
        response_cached_bytes_max: 1024,
        operations_max: 8,
        requests_max: 2,
    };
    let args = session_of(&known, (caller(number), number as u64), attrs);
    let session = engine.create_session(now, &args).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    engine.reclaim_complete(now, &client, caller(number)).unwrap();
    client
}

/// An event.
#[derive(Debug, Clone)]
enum Step {
    Open {
        client: usize,
        access: u32,
        wish: DelegationWish,
    },
    Close {
        client: usize,
    },
    /// The client returns its delegation.
    Return {
        client: usize,
    },
    /// The client asks for the delegation of the directory.
    AskDirectory {
        client: usize,
    },
    /// The client changes the directory.
    ChangeDirectory {
        client: usize,
    },
    /// The client returns the delegation of the directory.
    ReturnDirectory {
        client: usize,
    },
    /// CB_RECALL has reached the client.
    Sent {
        client: usize,
    },
    /// Time passes, and all clients renew their leases.
    Pass {
        seconds: u64,
    },
    /// The client frees the stateids of its revoked delegations.
    Free {
        client: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let client = || 0..CLIENTS;
    let wish = prop_oneof![
        Just(DelegationWish::NoPreference),
        Just(DelegationWish::Read),
        Just(DelegationWish::Write),
        Just(DelegationWish::None),
    ];
    prop_oneof![
        6 => (client(), 1..=3_u32, wish)
            .prop_map(|(client, access, wish)| Step::Open { client, access, wish }),
        3 => client().prop_map(|client| Step::Close { client }),
        1 => client().prop_map(|client| Step::Return { client }),
        3 => client().prop_map(|client| Step::AskDirectory { client }),
        2 => client().prop_map(|client| Step::ChangeDirectory { client }),
        1 => client().prop_map(|client| Step::ReturnDirectory { client }),
        2 => client().prop_map(|client| Step::Sent { client }),
        4 => (1..80_u64).prop_map(|seconds| Step::Pass { seconds }),
        1 => client().prop_map(|client| Step::Free { client }),
    ]
}

/// A delegation of the model.
#[derive(Debug, Clone, Copy)]
struct Delegated {
    stateid: Stateid,
    kind: DelegationKind,
    queued: Option<Duration>,
    sent: Option<Duration>,
}

/// A client of the model.
#[derive(Debug, Default)]
struct Holder {
    open: Option<(Stateid, u32)>,
    delegated: Option<Delegated>,
    directory: Option<Delegated>,
    /// Time until which the directory is kept free for the client's change, which was told to wait.
    waits_until: Option<Duration>,
    revoked: Vec<Stateid>,
}

struct World {
    engine: Engine,
    now: Duration,
    lease: Duration,
    clients: Vec<Arc<Client>>,
    holders: [Holder; CLIENTS],
}

impl World {
    fn new() -> Self {
        let (now, settings) = (Duration::from_secs(10), Settings::new(1, [7; 16]));
        let engine = Engine::new(now, settings, Recovered::new());
        let clients = (0..CLIENTS).map(|number| client(&engine, now, number)).collect();
        Self { engine, now, lease: settings.lease, clients, holders: Default::default() }
    }

    fn sender(&self, client: usize) -> Sender<'_> {
        Sender::of(self.now, &self.clients[client])
    }

    fn perform(&mut self, step: &Step) {
        match *step {
            Step::Open { client, access, wish } => self.open(client, access, wish),
            Step::Close { client } => {
                if let Some((stateid, _)) = self.holders[client].open.take() {
                    self.engine.close((self.sender(client), &file()), &stateid).unwrap();
                }
            }
            Step::Return { client } => {
                if let Some(delegated) = self.holders[client].delegated.take() {
                    let shown = (self.sender(client), &file());
                    self.engine.delegreturn(shown, &delegated.stateid).unwrap();
                }
            }
            Step::AskDirectory { client } => self.ask_directory(client),
            Step::ChangeDirectory { client } => self.change_directory(client),
            Step::ReturnDirectory { client } => {
                if let Some(held) = self.holders[client].directory.take() {
                    let shown = (self.sender(client), &directory(1));
                    self.engine.delegreturn(shown, &held.stateid).unwrap();
                }
            }
            Step::Sent { client } => {
                let now = self.now;
                let Holder { delegated, directory, .. } = &mut self.holders[client];
                for delegated in delegated.iter_mut().chain(directory) {
                    // Sending a recall again changes nothing, and neither does one that was not
                    // begun.
                    let stateid = delegated.stateid;
                    delegated.sent = delegated.sent.or(delegated.queued.map(|_| now));
                    self.engine.recall_sent(now, &self.clients[client], &stateid);
                }
            }
            Step::Pass { seconds } => self.pass(Duration::from_secs(seconds)),
            Step::Free { client } => {
                for stateid in std::mem::take(&mut self.holders[client].revoked) {
                    self.engine.free_stateid(self.sender(client), &stateid).unwrap();
                    let left = self.engine.test_stateid(self.sender(client), &stateid);
                    assert_eq!(left, Err(Error::BadStateid));
                }
            }
        }
        self.check();
    }

    fn open(&mut self, client: usize, access: u32, wish: DelegationWish) {
        let args = Open {
            client: &self.clients[client],
            caller: caller(client),
            owner: b"opener",
            file: file(),
            share: Share::access(access),
            claim: Claim::New,
            wish,
            user: None,
            grantee: None,
            empties: false,
        };
        let writes = access & Share::WRITE != 0;
        let now = self.now;
        let mut others = self.holders.iter_mut().enumerate().filter(|(other, _)| *other != client);
        let conflicts = others.by_ref().filter_map(|(_, holder)| holder.delegated.as_mut());
        let conflicts = conflicts.filter(|it| writes || it.kind == DelegationKind::Write);
        let mut delayed = false;
        for delegated in conflicts {
            delegated.queued.get_or_insert(now);
            delayed = true;
        }
        match self.engine.open(now, &args) {
            Ok(opened) => {
                assert!(!delayed, "the open conflicts with a delegation of another client");
                let had = self.holders[client].open.map_or(0, |(_, access)| access);
                self.holders[client].open = Some((opened.stateid, had | access));
                if let Delegation::Granted { stateid, kind, .. } = opened.delegation {
                    self.check_grant(client, kind);
                    let (queued, sent) = (None, None);
                    let delegated = Delegated { stateid, kind, queued, sent };
                    assert!(self.holders[client].delegated.replace(delegated).is_none());
                }
            }
            Err(error) => assert_eq!((error, delayed), (Error::Delay, true)),
        }
    }

    /// Asks for the directory, which is delegated unless the client has it, a delegation of it is
    /// being recalled, or a change waits.
    fn ask_directory(&mut self, client: usize) {
        let user = Arc::new(Cred::new(Uid::new(1), Gid::new(1)));
        let request = DirectoryRequest {
            notices: None,
            client: &self.clients[client],
            caller: caller(client),
            directory: directory(1),
            parent: directory(0),
            user: &user,
            policy: &Always,
        };
        let asked = self.engine.delegate_directory(self.now, &request);
        let mut held = self.holders.iter().filter_map(|holder| holder.directory);
        let is_recalled = held.any(|held| held.queued.is_some());
        let mut waits = self.holders.iter().filter_map(|holder| holder.waits_until);
        let is_wanted = is_recalled || waits.any(|until| until > self.now);
        match asked {
            Ok(stateid) => {
                assert!(!is_wanted);
                let (queued, sent) = (None, None);
                let held = Delegated { stateid, kind: DelegationKind::Directory, queued, sent };
                assert!(self.holders[client].directory.replace(held).is_none());
            }
            Err(NoDirectory::Held) => assert!(self.holders[client].directory.is_some()),
            Err(error) => assert_eq!((error, is_wanted), (NoDirectory::Contention, true)),
        }
    }

    /// Changes the directory, which waits until no other client has its delegation. The client's
    /// own one stays.
    fn change_directory(&mut self, client: usize) {
        let (now, mine) = (self.now, &self.clients[client]);
        let changed = self.engine.break_delegations(
            now,
            Some(mine),
            &directory(1),
            Share::access(Share::BOTH),
        );
        let others = self.holders.iter_mut().enumerate().filter(|(other, _)| *other != client);
        let mut waits = false;
        for held in others.filter_map(|(_, holder)| holder.directory.as_mut()) {
            held.queued.get_or_insert(now);
            waits = true;
        }
        assert_eq!(changed, if waits { Err(Error::Delay) } else { Ok(()) });
        self.holders[client].waits_until = waits.then_some(now + Duration::from_secs(15));
    }

    /// Asserts that a granted delegation conflicts with no state of other clients.
    fn check_grant(&self, client: usize, kind: DelegationKind) {
        let others = self.holders.iter().enumerate().filter(|(other, _)| *other != client);
        for (_, other) in others {
            let access = other.open.map_or(0, |(_, access)| access);
            let against = match kind {
                DelegationKind::Directory | DelegationKind::Read => Share::WRITE,
                DelegationKind::Write => Share::BOTH,
            };
            assert_eq!(access & against, 0, "another client has the file open");
            let held = other.delegated.map(|delegated| delegated.kind);
            assert!(held.is_none_or(|held| held == kind && kind == DelegationKind::Read));
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for (number, client) in self.clients.iter().enumerate() {
            let bound = (ConnectionId(number as u64), Direction::Both);
            let session = &client.sessions()[0];
            self.engine.bind_connection(self.now, session, bound, caller(number)).unwrap();
        }
        self.engine.tick(self.now);
        for holder in &mut self.holders {
            let overdue = |it: &mut Delegated| {
                let queued = it.queued.map(|queued| queued + self.lease * 2);
                let sent = it.sent.map(|sent| sent + self.lease);
                queued.into_iter().chain(sent).min().is_some_and(|until| self.now >= until)
            };
            for held in [&mut holder.delegated, &mut holder.directory] {
                let revoked = held.take_if(|held| overdue(held));
                holder.revoked.extend(revoked.map(|delegated| delegated.stateid));
            }
        }
    }

    /// Asserts that all stateids are in the state of the model, and that each recall is sent once.
    fn check(&self) {
        while let Some(effect) = self.engine.poll_effect() {
            if let Effect::Recall { client, stateid, .. } = effect {
                let number = client.owner()[0] as usize;
                let Holder { delegated, directory, .. } = &self.holders[number];
                let mut held = delegated.iter().chain(directory);
                assert!(held.any(|it| it.stateid == stateid && it.queued.is_some()));
            }
        }
        for (client, holder) in self.holders.iter().enumerate() {
            let test = |stateid| self.engine.test_stateid(self.sender(client), stateid);
            if let Some((stateid, _)) = &holder.open {
                assert_eq!(test(stateid), Ok(()));
            }
            let held = || holder.delegated.iter().chain(&holder.directory);
            held().for_each(|delegated| assert_eq!(test(&delegated.stateid), Ok(())));
            let recalls = self.engine.recalls(&self.clients[client]).len();
            assert_eq!(recalls, held().filter(|held| held.queued.is_some()).count());
            for stateid in &holder.revoked {
                assert_eq!(test(stateid), Err(Error::DelegRevoked));
            }
        }
        let held = self.holders.iter().filter_map(|it| it.delegated.map(|it| it.kind));
        let strongest = held.clone().max();
        assert_eq!(self.engine.delegated(&file()), strongest);
        let directories = self.holders.iter().filter(|it| it.directory.is_some()).count();
        let census = self.engine.census();
        assert_eq!(
            (census.delegations, census.directories),
            (held.count() + directories, directories)
        );
    }
}

proptest! {
    #[test]
    fn recalls_and_revocations_follow_the_model(
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.perform(step));
    }
}
