//! Calls of NFSv3 that conflict with state of NFSv4 clients and NLM hosts, or with state that they
//! may reclaim.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use comity_coherence::Hosts;
use comity_credential::Channel;
use comity_proto::nfs3::{
    Create3args, Createhow3, Link3args, Mkdir3args, Rename3args, Sattr3, Setattr3args, procedure,
};
use comity_state::{
    Claim, Client, Delegation, DelegationKind, DelegationWish, Effect, Engine, FileKey,
    LockRequestKind, Open, Opened, Origin, Recovered, Sender, Settings, Share, Stateid,
};
use comity_xdr::{Encode, Opaque};

use crate::recalls::{JUKEBOX, NOW, client, create, introduced, place, read, write};
use crate::world::{Ground, PEER, World};

const ACCES: u32 = 13;

/// A server of NFSv3 with an engine, and a file and a directory on it.
struct ServerWithState {
    engine: Arc<Engine>,
    world: World,
    file: Vec<u8>,
    /// Seconds of the engine's clock.
    clock: Arc<AtomicU64>,
}

fn site(engine: Engine) -> ServerWithState {
    let (engine, world) = (Arc::new(engine), World::new(Ground::default()));
    world.call(procedure::CREATE, &create(&world, "a"));
    world.call(procedure::MKDIR, &mkdir(&world, "dir"));
    let clock = Arc::new(AtomicU64::new(NOW.as_secs()));
    let time = Arc::clone(&clock);
    let now = move || Duration::from_secs(time.load(Ordering::Relaxed));
    let world = world.recalling(Hosts::new(Arc::clone(&engine), now));
    let file = world.handle("a");
    ServerWithState { engine, world, file, clock }
}

fn fresh() -> ServerWithState {
    site(Engine::new(NOW, Settings::new(7, [7; 16]), Recovered::new()))
}

/// Returns a server that has restarted after `before` changed its state.
fn restarted(before: impl FnOnce(&Engine)) -> ServerWithState {
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    let engine = Engine::new(NOW, settings, Recovered::new());
    before(&engine);
    let (mut records, mut recovered) = (Vec::new(), Recovered::new());
    engine.poll_records(&mut records);
    records.into_iter().for_each(|record| recovered.apply(record));
    site(Engine::new(NOW, Settings::new(8, [7; 16]), recovered))
}

fn mkdir<'a>(world: &'a World, name: &'a str) -> Mkdir3args<'a> {
    Mkdir3args { place: place(world, name), attributes: Sattr3::default() }
}

const CUT: Sattr3 = Sattr3 { size: Some(0), ..EMPTY };
const MODE: Sattr3 = Sattr3 { mode: Some(0o600), ..EMPTY };
const EMPTY: Sattr3 = Sattr3 {
    mode: None,
    uid: None,
    gid: None,
    size: None,
    atime: comity_proto::nfs3::SetTime3::DontChange,
    mtime: comity_proto::nfs3::SetTime3::DontChange,
};

impl ServerWithState {
    fn status(&self, procedure: u32, arguments: &impl Encode) -> u32 {
        let body = self.world.call(procedure, arguments);
        u32::from_be_bytes(body[..4].try_into().unwrap())
    }

    fn write(&self) -> u32 {
        self.status(procedure::WRITE, &write(&self.file))
    }

    fn read(&self) -> u32 {
        self.status(procedure::READ, &read(&self.file))
    }

    fn set(&self, object: &[u8], new_attributes: Sattr3) -> u32 {
        let args = Setattr3args { object: Opaque(object), new_attributes, guard: None };
        self.status(procedure::SETATTR, &args)
    }

    fn create(&self, name: &str, set: Sattr3) -> u32 {
        let (place, how) = (place(&self.world, name), Createhow3::Unchecked(set));
        self.status(procedure::CREATE, &Create3args { place, how })
    }

    fn rename(&self, from: &str, to: &str) -> u32 {
        let (from, to) = (place(&self.world, from), place(&self.world, to));
        self.status(procedure::RENAME, &Rename3args { from, to })
    }

    fn link(&self, name: &str) -> u32 {
        let (file, link) = (Opaque(&self.file[..]), place(&self.world, name));
        self.status(procedure::LINK, &Link3args { file, link })
    }

    fn remove(&self, name: &str) -> u32 {
        self.status(procedure::REMOVE, &place(&self.world, name))
    }

    fn key(&self) -> FileKey {
        self.world.exports.current().unseal_key(&self.file).unwrap()
    }

    fn open(&self, client: &Arc<Client>, (share, claim): (Share, Claim)) -> Opened {
        let (owner, file, wish) = (&b"owner"[..], self.key(), DelegationWish::None);
        let (caller, user, grantee, empties) = (client.caller(), None, None, false);
        let open = Open { client, caller, owner, file, share, claim, wish, user, grantee, empties };
        self.engine.open(NOW, &open).unwrap()
    }

    fn close(&self, client: &Arc<Client>, stateid: &Stateid) {
        let sender = Sender::of(NOW, client);
        self.engine.close((sender, &self.key()), stateid).unwrap();
    }

    /// A client of NFSv4 that has the file open with this deny mode.
    fn denied(&self, deny: u32) -> (Arc<Client>, Stateid) {
        let client = client(&self.engine);
        let share = Share { access: Share::READ, deny };
        let opened = self.open(&client, (share, Claim::New));
        (client, opened.stateid)
    }
}

#[test]
fn changes_wait_in_grace_while_a_client_of_nfsv4_may_reclaim() {
    let site = restarted(|engine| drop(client(engine)));
    let attr = site.world.call(procedure::GETATTR, &Opaque::<64>(&site.file));
    assert_eq!(site.write(), JUKEBOX);
    assert_eq!(site.set(&site.file, CUT), JUKEBOX);
    assert_eq!(site.set(&site.file, MODE), JUKEBOX);
    assert_eq!(site.create("a", CUT), JUKEBOX);
    assert_eq!(site.remove("a"), JUKEBOX);
    assert_eq!(site.rename("a", "b"), JUKEBOX);
    assert_eq!(site.link("b"), JUKEBOX);
    assert_eq!(site.world.call(procedure::GETATTR, &Opaque::<64>(&site.file)), attr);
}

#[test]
fn no_write_precedes_the_reclaim_of_a_write_delegation_in_grace() {
    let site = restarted(|engine| drop(client(engine)));
    assert_eq!(site.write(), JUKEBOX);
    let client = introduced(&site.engine);
    let claim = Claim::Previous(Some(DelegationKind::Write));
    let opened = site.open(&client, (Share::access(Share::BOTH), claim));
    let Delegation::Granted { stateid, .. } = opened.delegation else { panic!("{opened:?}") };
    site.engine.reclaim_complete(NOW, &client, client.caller()).unwrap();
    assert!(!site.engine.is_in_grace(), "nobody else was expected");
    assert_eq!(site.write(), JUKEBOX);
    assert!(matches!(site.engine.poll_effect(), Some(Effect::Recall { .. })));
    let sender = Sender::of(NOW, &client);
    site.engine.delegreturn((sender, &site.key()), &stateid).unwrap();
    assert_eq!(site.write(), 0);
}

#[test]
fn grace_does_not_delay_reads_or_changes_of_objects_that_cannot_be_open() {
    let site = restarted(|engine| drop(client(engine)));
    assert_eq!(site.read(), 0);
    assert_eq!(site.create("new", EMPTY), 0);
    assert_eq!(site.set(&site.world.handle("dir"), MODE), 0);
    assert_eq!(site.rename("dir", "moved"), 0);
    assert_eq!(site.status(procedure::MKDIR, &mkdir(&site.world, "dir")), 0);
    assert_eq!(site.status(procedure::RMDIR, &place(&site.world, "moved")), 0);
    assert_eq!(site.write(), JUKEBOX);
}

#[test]
fn grace_delays_no_change_if_only_nlm_hosts_may_reclaim() {
    let site = restarted(|engine| drop(engine.host(NOW, b"192.0.2.1", Origin::default()).unwrap()));
    assert!(site.engine.is_in_grace());
    assert_eq!(site.write(), 0);
    let site = restarted(|engine| {
        drop((client(engine), engine.host(NOW, b"192.0.2.1", Origin::default()).unwrap()));
    });
    assert_eq!(site.write(), JUKEBOX);
    // The last NFSv4 client has ended its reclaim; the NLM host has not.
    let back = introduced(&site.engine);
    site.engine.reclaim_complete(NOW, &back, back.caller()).unwrap();
    assert!(site.engine.is_in_grace());
    assert_eq!(site.write(), 0);
}

#[test]
fn a_write_waits_and_a_read_is_refused_where_an_open_of_nfsv4_denies_it() {
    let site = fresh();
    assert_eq!(site.create("b", EMPTY), 0);
    let (client, stateid) = site.denied(Share::BOTH);
    assert_eq!(site.write(), JUKEBOX);
    assert_eq!(site.read(), ACCES);
    assert_eq!(site.set(&site.file, CUT), ACCES);
    assert_eq!(site.create("a", CUT), ACCES);
    assert_eq!(site.set(&site.file, MODE), 0);
    let other = site.world.handle("b");
    assert_eq!(site.status(procedure::WRITE, &write(&other)), 0);
    site.close(&client, &stateid);
    assert_eq!([site.write(), site.read(), site.set(&site.file, CUT)], [0; 3]);
}

#[test]
fn only_what_is_denied_is_refused() {
    for (deny, write, read) in [(Share::WRITE, JUKEBOX, 0), (Share::READ, 0, ACCES)] {
        let site = fresh();
        let _open = site.denied(deny);
        assert_eq!((site.write(), site.read()), (write, read), "deny {deny}");
    }
}

#[test]
fn a_deny_mode_of_a_client_whose_lease_has_expired_has_no_effect() {
    let site = fresh();
    let _open = site.denied(Share::BOTH);
    assert_eq!(site.write(), JUKEBOX);
    site.clock.store(NOW.as_secs() + site.engine.settings().lease.as_secs(), Ordering::Relaxed);
    assert_eq!([site.write(), site.read()], [0; 2]);
}

/// A host that calls by TLS may have sent NLM in clear, as Linux does.
#[test]
fn a_share_of_nlm_denies_other_hosts_only() {
    let plain = PEER.to_string();
    let by_tls = format!("{PEER} by TLS");
    let all = [("192.0.2.1", [true; 2]), (&*plain, [false, false]), (&*by_tls, [true, false])];
    for (name, is_denied) in all {
        let channels = [Channel::Plain, Channel::Tls(None)];
        for (channel, is_denied) in channels.into_iter().zip(is_denied) {
            let site = fresh();
            let site = ServerWithState { world: site.world.by_channel(channel), ..site };
            let host = site.engine.host(NOW, name.as_bytes(), Origin::default()).unwrap();
            let share = Share { access: Share::BOTH, deny: Share::BOTH };
            let what = (&b"owner"[..], site.key());
            site.engine.share_host(NOW, &host, what, share, LockRequestKind::NonBlocking).unwrap();
            let denied = if is_denied { (JUKEBOX, ACCES) } else { (0, 0) };
            assert_eq!((site.write(), site.read()), denied, "{name}");
            site.engine.unshare_host(NOW, &host, what);
            assert_eq!([site.write(), site.read()], [0; 2], "{name}");
        }
    }
}
