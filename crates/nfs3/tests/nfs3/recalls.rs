//! Calls of NFSv3 conflict with no delegation of an NFSv4 client: they recall it first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use comity_coherence::Hosts;
use comity_proto::nfs3::{
    Create3args, Createhow3, Diropargs3, Link3args, Read3args, Rename3args, Sattr3, Setattr3args,
    StableHow, Write3args, procedure,
};
use comity_state::{
    Caller, ChannelAttrs, Claim, Client, ClientOwner, ConnectionId, CreateSession, Delegation,
    DelegationKind, DelegationWish, Effect, Engine, ExchangeId, Open, Recovered, Sender, Settings,
    Share, Stateid, Verifier,
};
use comity_xdr::{Encode, Opaque};

use crate::world::{Ground, World};

pub(crate) const NOW: Duration = Duration::from_secs(1);
pub(crate) const JUKEBOX: u32 = 10_008;

pub(crate) struct Delegate {
    pub(crate) engine: Arc<Engine>,
    pub(crate) client: Arc<Client>,
    pub(crate) world: World,
    pub(crate) file: Vec<u8>,
}

pub(crate) fn delegate(access: u32) -> (Delegate, Stateid) {
    delegate_beside(access, |engine| Hosts::new(engine, || NOW))
}

/// A file that is delegated to an NFSv4 client, and a server of NFSv3 that knows of the delegation
/// by `knows`.
pub(crate) fn delegate_beside(
    access: u32,
    knows: impl FnOnce(Arc<Engine>) -> Hosts,
) -> (Delegate, Stateid) {
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    let engine = Arc::new(Engine::new(NOW, settings, Recovered::new()));
    let client = client(&engine);
    engine.stored(engine.unstored().unwrap());
    let world = World::new(Ground::default());
    world.call(procedure::CREATE, &create(&world, "a"));
    let world = world.recalling(knows(Arc::clone(&engine)));
    let file = world.handle("a");
    let open = Open {
        client: &client,
        caller: client.caller(),
        owner: b"owner",
        file: world.exports.current().unseal_key(&file).unwrap(),
        share: Share::access(access),
        claim: Claim::New,
        wish: DelegationWish::Any,
        user: None,
        grantee: None,
        empties: false,
    };
    let opened = engine.open(NOW, &open).unwrap();
    let Delegation::Granted { stateid, kind, .. } = opened.delegation else { panic!("{opened:?}") };
    let wanted =
        if access & Share::WRITE != 0 { DelegationKind::Write } else { DelegationKind::Read };
    assert_eq!(kind, wanted);
    (Delegate { engine, client, world, file }, stateid)
}

/// A client that can be called back and has nothing to reclaim.
pub(crate) fn client(engine: &Engine) -> Arc<Client> {
    let client = introduced(engine);
    engine.reclaim_complete(NOW, &client, client.caller()).unwrap();
    client
}

/// A client that can be called back and may still reclaim state.
pub(crate) fn introduced(engine: &Engine) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: b"c"[..].into() };
    let caller = Caller::default();
    let exchange = ExchangeId { owner, caller, update: false };
    let met = engine.exchange_id(NOW, exchange).unwrap();
    let attrs = ChannelAttrs {
        request_bytes_max: 1 << 20,
        response_bytes_max: 1 << 20,
        response_cached_bytes_max: 4096,
        operations_max: 16,
        requests_max: 16,
    };
    let create = CreateSession {
        clientid: met.clientid,
        sequenceid: met.sequenceid,
        caller,
        connection: ConnectionId(1),
        back_wanted: true,
        fore: attrs,
        back: attrs,
        minor: 1,
        program: 1,
        security: Box::default(),
    };
    let made = engine.create_session(NOW, &create).unwrap();
    let client = Arc::clone(engine.session(&made.session).unwrap().client());
    engine.callbacks_work(&client);
    while engine.poll_effect().is_some() {}
    client
}

pub(crate) fn place<'a>(world: &'a World, name: &'a str) -> Diropargs3<'a> {
    Diropargs3 { dir: Opaque(&world.root), name: Opaque(name.as_bytes()) }
}

/// The arguments of a CREATE that truncates an existing file.
fn emptying<'a>(world: &'a World, name: &'a str) -> Create3args<'a> {
    let attributes = Sattr3 { size: Some(0), ..Sattr3::default() };
    Create3args { place: place(world, name), how: Createhow3::Unchecked(attributes) }
}

pub(crate) fn create<'a>(world: &'a World, name: &'a str) -> Create3args<'a> {
    let attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
    Create3args { place: place(world, name), how: Createhow3::Unchecked(attributes) }
}

impl Delegate {
    pub(crate) fn status(&self, procedure: u32, arguments: &impl Encode) -> u32 {
        let body = self.world.call(procedure, arguments);
        u32::from_be_bytes(body[..4].try_into().unwrap())
    }

    /// Asserts that the call recalls the delegation, and succeeds once it is returned.
    fn is_recalled_by(&self, stateid: Stateid, procedure: u32, arguments: &impl Encode) {
        assert_eq!(self.status(procedure, arguments), JUKEBOX, "procedure {procedure}");
        let effect = self.engine.poll_effect();
        assert!(matches!(effect, Some(Effect::Recall { stateid: it, .. }) if it == stateid));
        let file = self.world.exports.current().unseal_key(&self.file).unwrap();
        self.engine.delegreturn((Sender::of(NOW, &self.client), &file), &stateid).unwrap();
        assert_eq!(self.status(procedure, arguments), 0, "procedure {procedure}");
    }
}

pub(crate) fn write(file: &[u8]) -> Write3args<'_> {
    let (stable, data) = (StableHow::Unstable, Opaque(&b"x"[..]));
    Write3args { file: Opaque(file), offset: 0, count: 1, stable, data }
}

pub(crate) fn read(file: &[u8]) -> Read3args<'_> {
    Read3args { file: Opaque(file), offset: 0, count: 1 }
}

#[test]
fn a_write_recalls_a_read_delegation() {
    let (delegate, stateid) = delegate(Share::READ);
    delegate.is_recalled_by(stateid, procedure::WRITE, &write(&delegate.file));
}

/// After a restart it could reclaim the delegation, and its cached writes would replace newer data.
#[test]
fn a_client_that_loses_a_delegation_to_a_write_cannot_reclaim_it() {
    for settles in [true, false] {
        let (late, stored) = (NOW + Duration::from_secs(1000), Arc::new(AtomicBool::new(false)));
        let (delegate, _) = delegate_beside(Share::BOTH, |engine| {
            let (storing, noted) = (Arc::clone(&engine), Arc::clone(&stored));
            let settle = move |mark| {
                storing.stored(mark);
                noted.store(true, Ordering::Relaxed);
                settles
            };
            Hosts::new(engine, move || late).settling(Some(Arc::new(settle)))
        });
        let status = delegate.status(procedure::WRITE, &write(&delegate.file));
        // The data that a client has yet to write are not lost: it repeats the call.
        let jukebox = 10_008;
        assert_eq!(status, if settles { 0 } else { jukebox });
        assert!(stored.load(Ordering::Relaxed));
    }
}

/// The holder has no changed data, so the reader need not wait for the disk.
#[test]
fn a_read_does_not_wait_until_the_loss_of_a_delegation_is_stored() {
    let late = NOW + Duration::from_secs(1000);
    let (delegate, _) = delegate_beside(Share::BOTH, |engine| {
        Hosts::new(engine, move || late).settling(Some(Arc::new(|_| panic!("a read waits"))))
    });
    assert_eq!(delegate.status(procedure::READ, &read(&delegate.file)), 0);
}

#[test]
fn a_read_does_not_recall_a_read_delegation_but_a_write_delegation() {
    let (reader, _) = delegate(Share::READ);
    assert_eq!(reader.status(procedure::READ, &read(&reader.file)), 0);
    let (writer, stateid) = delegate(Share::BOTH);
    writer.is_recalled_by(stateid, procedure::READ, &read(&writer.file));
}

#[test]
fn changes_of_attributes_and_names_recall() {
    let (one, stateid) = delegate(Share::READ);
    let object = Opaque(&one.file[..]);
    let new_attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
    let guard = None;
    one.is_recalled_by(
        stateid,
        procedure::SETATTR,
        &Setattr3args { object, new_attributes, guard },
    );
    let (one, stateid) = delegate(Share::READ);
    one.is_recalled_by(stateid, procedure::REMOVE, &place(&one.world, "a"));
    let (one, stateid) = delegate(Share::READ);
    let (from, to) = (place(&one.world, "a"), place(&one.world, "b"));
    one.is_recalled_by(stateid, procedure::RENAME, &Rename3args { from, to });
    let (one, stateid) = delegate(Share::READ);
    let (file, link) = (Opaque(&one.file[..]), place(&one.world, "b"));
    one.is_recalled_by(stateid, procedure::LINK, &Link3args { file, link });
    let (one, stateid) = delegate(Share::READ);
    one.is_recalled_by(stateid, procedure::CREATE, &emptying(&one.world, "a"));
    // A client with a write delegation is asked for the attributes before a reply shows them.
    let (one, stateid) = delegate(Share::BOTH);
    one.is_recalled_by(stateid, procedure::CREATE, &create(&one.world, "a"));
}

#[test]
fn a_create_that_changes_nothing_recalls_no_read_delegation() {
    let (one, _) = delegate(Share::READ);
    assert_eq!(one.status(procedure::CREATE, &create(&one.world, "a")), 0);
    assert!(one.engine.poll_effect().is_none(), "a delegation is recalled");
}

/// The delegation of a file that a rename replaces is recalled, too.
#[test]
fn a_replaced_file_is_recalled() {
    let (one, stateid) = delegate(Share::READ);
    assert_eq!(one.status(procedure::CREATE, &create(&one.world, "b")), 0);
    let (from, to) = (place(&one.world, "b"), place(&one.world, "a"));
    assert_eq!(one.status(procedure::RENAME, &Rename3args { from, to }), JUKEBOX);
    assert!(
        matches!(one.engine.poll_effect(), Some(Effect::Recall { stateid: s, .. }) if s == stateid)
    );
}

#[test]
fn a_caller_without_rights_to_a_file_recalls_no_delegation_of_it() {
    let (one, stateid) = delegate(Share::BOTH);
    let (file, handle) = (Opaque(&one.file[..]), &one.file);
    let set = |new_attributes| Setattr3args { object: file, new_attributes, guard: None };
    let chmod = set(Sattr3 { mode: Some(0o666), ..Sattr3::default() });
    let cut = set(Sattr3 { size: Some(0), ..Sattr3::default() });
    let (from, to) = (place(&one.world, "a"), place(&one.world, "b"));
    let new_attributes = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
    let of_root = Setattr3args { object: Opaque(&one.world.root), new_attributes, guard: None };
    assert_eq!(one.status(procedure::SETATTR, &of_root), 0);
    one.world.act_as(1001, 1001, &[]);
    let (perm, acces) = (1, 13);
    assert_eq!(one.status(procedure::READ, &read(handle)), acces);
    assert_eq!(one.status(procedure::WRITE, &write(handle)), acces);
    assert_eq!(one.status(procedure::SETATTR, &chmod), perm);
    assert_eq!(one.status(procedure::SETATTR, &cut), acces);
    assert_eq!(one.status(procedure::LINK, &Link3args { file, link: to }), acces);
    assert_eq!(one.status(procedure::REMOVE, &from), acces);
    assert_eq!(one.status(procedure::RENAME, &Rename3args { from, to }), acces);
    assert_eq!(one.status(procedure::CREATE, &create(&one.world, "a")), 0);
    assert_eq!(one.status(procedure::CREATE, &emptying(&one.world, "a")), acces);
    assert!(one.engine.poll_effect().is_none(), "a delegation is recalled");
    one.world.act_as(0, 0, &[]);
    one.is_recalled_by(stateid, procedure::WRITE, &write(handle));
}
