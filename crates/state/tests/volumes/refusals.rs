use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    Always, BeginOffload, Census, ClientId, DirectoryRequest, Effect, Engine, Error, ExportRefusal,
    ImportRefusal, LayoutIomode, LockRequestKind, Principal, Record, Recovered, Sender, Sequence,
    SequenceAnswer, Sequenced, SessionId, Settings, StatusFlags,
};
use comity_state::{ByteRange, ConnectionId};
use comity_vfs::{Cred, Gid, Uid};

use crate::moves::move_volume;
use crate::site::{
    NOW, VOLUME, caller, client, engine, engine_with, file, host_lock, opened, sample,
};

/// A request that lists a directory begins a delegation of it.
fn delegate_directory(engine: &Engine, name: &str) -> comity_state::Stateid {
    let (client, _) = client(engine, name);
    let user = Arc::new(Cred::new(Uid::new(1), Gid::new(1)));
    let request = DirectoryRequest {
        client: &client,
        caller: client.caller(),
        directory: file(VOLUME, 7),
        parent: file(VOLUME, 6),
        user: &user,
        policy: &Always,
        notices: None,
    };
    engine.delegate_directory(NOW, &request).unwrap()
}

#[test]
fn delegated_directories_and_layouts_are_recalled_before_a_volume_can_move() {
    let from = engine(1);
    let directory = delegate_directory(&from, "a");
    let refused = from.export_volume(NOW, VOLUME);
    assert_eq!(refused, Err(ExportRefusal::DirectoryDelegation(file(VOLUME, 7))));
    let (b, _) = client(&from, "b");
    let placed = file(VOLUME, 8);
    let open = opened(&from, &b, placed);
    let sender = Sender::of(NOW, &b);
    let wanted = (LayoutIomode::Read, ByteRange::ALL);
    let layout = from.layoutget((sender, &placed), &open, wanted).unwrap();
    from.recall_volume(NOW, VOLUME);
    let effects = std::iter::from_fn(|| from.poll_effect());
    let is_recall = |it: &Effect| matches!(it, Effect::Recall { .. } | Effect::RecallLayout { .. });
    assert_eq!(effects.filter(is_recall).count(), 2);
    let a = from.client_by_id(directory_holder(&directory)).unwrap();
    from.delegreturn((Sender::of(NOW, &a), &file(VOLUME, 7)), &directory).unwrap();
    assert_eq!(from.export_volume(NOW, VOLUME), Err(ExportRefusal::Layout(placed)));
    from.layoutreturn((sender, &placed), &layout, (None, ByteRange::ALL)).unwrap();
    let exported = from.export_volume(NOW, VOLUME).unwrap();
    assert!(!exported.files[0].layout_rest.is_zero(), "no layout is given out for a while");
}

fn directory_holder(stateid: &comity_state::Stateid) -> ClientId {
    ClientId(u64::from_be_bytes(stateid.other[..8].try_into().unwrap()))
}

#[test]
fn a_copy_under_way_keeps_a_volume_from_moving() {
    let from = engine(1);
    let (a, session) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    let status = StatusFlags::default();
    let (seqid, slot, highest_slot, target_highest_slot) = (1, 0, 0, 0);
    let asked_by =
        SequenceAnswer { session, seqid, slot, highest_slot, target_highest_slot, status };
    let wanted = BeginOffload { file: file(VOLUME, 2), principal: Principal(0), asked_by };
    let copy = from.begin_offload(NOW, &a, wanted).unwrap();
    assert_eq!(from.export_volume(NOW, VOLUME), Err(ExportRefusal::Copy(a.id())));
    from.forget_offload(&a, &copy);
    assert!(from.export_volume(NOW, VOLUME).is_ok());
}

pub(super) fn request(session: SessionId) -> Sequence {
    Sequence {
        session,
        seqid: 1,
        slot: 0,
        highest_slot: 0,
        cache_this: true,
        operations: 2,
        request_bytes: 100,
        digest: 77,
        connection: ConnectionId(1),
        origin: caller(b'a').origin,
    }
}

#[test]
fn a_request_under_way_is_answered_before_a_volume_moves_and_its_retry_after() {
    let (from, to) = (engine(1), engine(2));
    let (a, session) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    let request = request(session);
    let Ok(Sequenced::New(ticket)) = from.sequence(NOW, &request) else { panic!("not new") };
    assert_eq!(from.export_volume(NOW, VOLUME), Err(ExportRefusal::RequestUnderWay(a.id())));
    ticket.answered(Some(b"the answer"));
    move_volume(&from, &to);
    let Ok(Sequenced::Again(reply)) = to.sequence(NOW, &request) else { panic!("done twice") };
    assert_eq!(&*reply, b"the answer");
}

#[test]
fn an_engine_in_grace_exports_and_imports_nothing() {
    let from = sample();
    let volume = from.export_volume(NOW, VOLUME).unwrap();
    let (a, _) = client(&from, "z");
    let mut recovered = Recovered::new();
    let name = comity_state::RecordedClient {
        protocol: a.protocol(),
        channel: *a.channel(),
        id: a.owner().into(),
    };
    recovered.apply(Record::Client(name, None));
    let to = Engine::new(NOW, Settings::new(9, [9; 16]), recovered);
    assert_eq!(to.export_volume(NOW, VOLUME), Err(ExportRefusal::Grace));
    assert_eq!(to.import_volume(NOW, &volume).map(drop), Err(ImportRefusal::Grace));
}

#[test]
fn a_client_whose_clientid_or_number_or_name_is_in_use_is_refused_with_all_others() {
    let (from, to) = (sample(), engine(2));
    let volume = move_volume(&from, &to);
    let known = to.census();
    let refused = to.import_volume(NOW, &volume).map(drop);
    let in_use = |id| Err(ImportRefusal::Client(id, Error::ClidInuse));
    assert_eq!(refused, in_use(volume.clients[0].id));
    assert_eq!(to.census(), known);

    // The name of the last client is in use.
    let to = engine(3);
    let host = to.host(NOW, b"host", caller(9).origin).unwrap();
    to.lock_host(NOW, &host, &host_lock(8), LockRequestKind::NonBlocking).unwrap();
    let known = to.census();
    assert_eq!(to.import_volume(NOW, &volume).map(drop), in_use(volume.clients[3].id));
    to.tick(NOW);
    assert_eq!(to.census(), known);

    // Another clientid has the same number.
    let to = engine(4);
    let (other, _) = client(&to, "x");
    let mut volume = volume;
    volume.clients.truncate(1);
    volume.files.clear();
    volume.clients[0].id = ClientId(other.id().0 ^ 1 << 40);
    volume.clients[0].sessions.clear();
    let known = to.census();
    assert_eq!(to.import_volume(NOW, &volume).map(drop), in_use(volume.clients[0].id));
    assert_eq!(to.census(), known);
}

#[test]
fn an_import_beyond_a_bound_changes_nothing() {
    let volume = sample().export_volume(NOW, VOLUME).unwrap();
    let refused_by = |change: fn(&mut Settings)| {
        let to = engine_with(2, change);
        let refused = to.import_volume(NOW, &volume).map(drop).unwrap_err();
        to.tick(NOW + Duration::from_secs(1000));
        assert_eq!(to.census(), Census::default(), "{refused}");
        assert!(!to.has_effects() && !to.has_delegations(), "{refused}");
        refused
    };
    let resource = |refused| matches!(refused, ImportRefusal::Client(_, Error::Resource));
    assert_eq!(refused_by(|it| it.limits.clients = 3), ImportRefusal::Full);
    assert_eq!(refused_by(|it| it.limits.delegations = 0), ImportRefusal::Full);
    let file = ImportRefusal::File(file(VOLUME, 1));
    assert_eq!(refused_by(|it| it.limits.locks_per_file = 2), file);
    assert!(resource(refused_by(|it| it.limits.held_bytes = 8192)));
    assert!(resource(refused_by(|it| it.limits.states_per_client = 2)));
    assert!(resource(refused_by(|it| it.limits.owners_per_client = 1)));
    assert!(resource(refused_by(|it| it.limits.sessions_per_client = 0)));
}
