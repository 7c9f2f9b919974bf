//! The server connects to clients of 4.0 to call them back; the number of its attempts is bounded.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comity_nfs4::{Callbacks, Dialed};
use comity_rpc::Backchannel;
use comity_state::{
    CallbackAddress, Caller, ClientId, ClientOwner, ConnectionId, Direction, Engine, Recovered,
    Setclientid, Settings, Verifier,
};

use crate::session::Session;
use crate::world::World;

const NOW: Duration = Duration::from_secs(1);

/// Introduces a client of 4.0 that takes callbacks at this port.
fn introduce(engine: &Engine, port: u8) -> ClientId {
    let (id, verifier) = (b"client"[..].into(), Verifier([1; 8]));
    let caller = Caller::default();
    let callback = CallbackAddress {
        program: 7,
        netid: b"tcp"[..].into(),
        address: format!("127.0.0.1.0.{port}").into_bytes().into(),
        ident: 0,
    };
    let owner = ClientOwner { verifier, id };
    let args = Setclientid { owner, caller, callback };
    let known = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (known.clientid, known.confirm), caller).unwrap();
    known.clientid
}

/// For a client that changes its callback address again and again, one connection is made at a
/// time, and the last one goes to the last address.
#[test]
fn a_client_that_keeps_moving_has_one_connection_made_at_a_time() {
    let engine = Arc::new(Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new()));
    let dials = Arc::new(Mutex::new(Vec::<(SocketAddr, Dialed)>::new()));
    let dial = {
        let dials = Arc::clone(&dials);
        move |address: SocketAddr, dialed: Dialed| dials.lock().unwrap().push((address, dialed))
    };
    let exports = Arc::clone(&World::new().exports);
    let callbacks = Callbacks::new(Arc::clone(&engine), exports, Box::new(dial), Box::new(|_| {}));
    let callbacks = Arc::new(callbacks);
    let mut clientid = None;
    for port in 1..100 {
        clientid = Some(introduce(&engine, port));
        callbacks.pump(NOW);
    }
    let next = || {
        let mut dials = dials.lock().unwrap();
        assert!(dials.len() <= 1, "{} at a time", dials.len());
        dials.pop()
    };
    let (address, dialed) = next().unwrap();
    assert_eq!(address.port(), 1);
    dialed(Err(io::ErrorKind::TimedOut.into()));
    let (address, dialed) = next().unwrap();
    assert_eq!(address.port(), 99);
    let line = Arc::new(Backchannel::new(|| {}));
    dialed(Ok(Arc::clone(&line)));
    assert!(next().is_none() && line.has_records(), "it is probed");
    let client = engine.client_by_id(clientid.unwrap()).unwrap();
    assert!(!client.has_callbacks(), "it has not answered yet");
}

/// Each of these calls makes the server probe the client. The number of unanswered probes is
/// bounded.
#[test]
fn unanswered_probes_of_a_client_are_bounded() {
    let world = World::new();
    let _session = Session::called_back(&world, 1, b"client");
    let client = Arc::clone(&world.engine.clients_after(NOW, ClientId(0), 1)[0].client);
    let (session, wanted) =
        (client.sessions()[0], (ConnectionId(world.line.id()), Direction::Both));
    for _ in 0..100 {
        world.engine.bind_connection(NOW, &session, wanted, client.caller()).unwrap();
    }
    assert_eq!(world.calls().len() as u32, comity_nfs4::limits::PROBES_MAX);
}
