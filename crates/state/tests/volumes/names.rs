use std::sync::Arc;

use comity_state::{
    Client, ClientOwner, ConnectionId, Engine, Error, ExchangeId, ImportRefusal, Verifier,
};

use crate::bounds::three_ranges;
use crate::site::{
    ELSEWHERE, NOW, VOLUME, caller, client, engine, engine_with, file, old_client, opened, owner,
};

/// A client of the same name as that of [`three_ranges`], with a session and an open elsewhere.
fn namesake(to: &Engine) -> Arc<Client> {
    let (here, _) = client(to, "a");
    opened(to, &here, file(ELSEWHERE, 1));
    here
}

#[test]
fn a_client_takes_its_name_from_a_client_whose_lease_has_expired() {
    let to = engine(2);
    let here = namesake(&to);
    let mut volume = three_ranges();
    let moved = volume.clients[0].id;
    volume.clients[0].name.verifier = Verifier([2; 8]);
    let refused = Err(ImportRefusal::Client(moved, Error::ClidInuse));
    assert_eq!(to.import_volume(NOW, &volume).map(drop), refused);
    let later = NOW + to.settings().lease;
    to.import_volume(later, &volume).unwrap();
    assert!(to.client_by_id(here.id()).is_none());
    let owner = ClientOwner { verifier: Verifier([2; 8]), ..owner("a") };
    let args = ExchangeId { owner, caller: caller(b'a'), update: false };
    assert_eq!(to.exchange_id(later, args).unwrap().clientid, moved);
    assert_eq!(to.census().clients, 1);
}

#[test]
fn a_refused_import_leaves_the_client_whose_name_it_would_take() {
    let to = engine_with(2, |it| it.limits.held_bytes = 8192);
    let here = namesake(&to);
    let mut volume = three_ranges();
    volume.clients[0].owners[0].name = vec![b'o'; 1024].into();
    volume.clients[0].owners[1].name = vec![b'p'; 1024].into();
    let (known, later) = (to.census(), NOW + to.settings().lease);
    let refused = to.import_volume(later, &volume).map(drop);
    assert_eq!(refused, Err(ImportRefusal::Client(volume.clients[0].id, Error::Resource)));
    assert_eq!(to.census(), known);
    assert!(to.client_by_id(here.id()).is_some());
}

#[test]
fn a_client_takes_its_name_from_a_client_without_sessions_and_state() {
    let to = engine(2);
    let (here, session) = client(&to, "a");
    let volume = three_ranges();
    to.destroy_session(&session, (ConnectionId(1), here.caller())).unwrap();
    to.import_volume(NOW, &volume).unwrap();
    assert!(to.client_by_id(here.id()).is_none());
    assert!(to.client_by_id(volume.clients[0].id).is_some());
}

#[test]
fn a_client_of_minor_version_0_without_opens_keeps_its_name_until_its_lease_expires() {
    let (from, to) = (engine(1), engine(2));
    let old = old_client(&from, "c");
    opened(&from, &old, file(VOLUME, 1));
    old_client(&to, "c");
    let volume = from.export_volume(NOW, VOLUME).unwrap();
    let refused = Err(ImportRefusal::Client(old.id(), Error::ClidInuse));
    assert_eq!(to.import_volume(NOW, &volume).map(drop), refused);
    to.import_volume(NOW + to.settings().lease, &volume).unwrap();
}
