//! No origin can use up the limits that others need, whatever number of clients it makes.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use comity_state::{
    Caller, ChannelAttrs, Client, ClientId, CreateSession, DelegationWish, Engine, Error, Origin,
    Result, SessionId,
};

use crate::people::{
    ATTRS, NOW, PLAIN, Person, Wish, announce, arrive, caller, client_40, client_41, confirm,
    connection, engine_with, exchange, try_open,
};

/// The number of origins that take as much as they get, one after the other. Each gets half of what
/// is left, so that the last ones get little.
const GREEDY: u8 = 8;

/// Asserts that a newcomer gets what it needs: a confirmed client of either minor version, a
/// session and an open.
fn serves(engine: &Engine, place: u8) {
    let newcomer = caller(0, place);
    let (client, _) = client_41(engine, newcomer, "newcomer");
    let wish = Wish { caller: newcomer, delegation: DelegationWish::None, ..PLAIN };
    try_open(engine, NOW, &client, Wish { file: 200, ..wish }).unwrap();
    client_40(engine, newcomer, "newcomer");
}

/// Confirms clients of different names until one is refused; returns their number.
fn takes_clients(engine: &Engine, place: u8) -> usize {
    let (caller, before) = (caller(0, place), engine.census().clients);
    let mut taken = 0;
    loop {
        let name = format!("{place} {before} {taken}");
        let said = match announce(engine, NOW, caller, (&name, 1)) {
            Ok(said) => said,
            Err(error) => break assert_eq!(error, Error::Delay),
        };
        confirm(engine, NOW, caller, said).unwrap();
        taken += 1;
    }
    taken
}

#[test]
fn an_origin_leaves_clients_for_others() {
    let engine = engine_with(|settings| settings.limits.clients = 1024);
    let taken = takes_clients(&engine, 1);
    assert_eq!(taken, 113, "an eighth of the 911 that are left with it, rounded down");
    serves(&engine, 2);
    assert_eq!(takes_clients(&engine, 1), 0);
}

#[test]
fn several_origins_leave_clients_for_others() {
    let engine = engine_with(|_| {});
    for place in 1..=GREEDY {
        println!("origin {place} takes {} clients", takes_clients(&engine, place));
    }
    serves(&engine, 100);
}

/// Clients that never confirm themselves displace only others of their own origin.
#[test]
fn an_origin_that_floods_with_introductions_displaces_its_own() {
    let engine = engine_with(|settings| settings.limits.clients = 1024);
    let modest = exchange(&engine, NOW, caller(0, 2), ("modest", 1)).unwrap();
    for number in 0..5000 {
        exchange(&engine, NOW, caller(0, 1), (&format!("{number}"), 1)).unwrap();
    }
    assert!(engine.client_by_id(modest.clientid).is_some());
    assert!(engine.census().clients <= 514, "{}", engine.census().clients);
}

/// A host with one address in an IPv6 network may use all addresses of the network.
#[test]
fn the_addresses_of_an_ipv6_network_share_one_quota() {
    let engine = engine_with(|settings| settings.limits.clients = 1024);
    let at = |host: u16| {
        let address = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host));
        Caller { origin: Origin::of(address), ..caller(0, 1) }
    };
    let come = |host: &u16| arrive(&engine, NOW, at(*host), (&format!("{host}"), 1)).is_ok();
    assert_eq!((0..1024).take_while(come).count(), 113, "as many as one address gets");
    serves(&engine, 2);
}

/// Clients that have ended do not count any more.
#[test]
fn an_origin_gets_new_clients_when_some_of_its_clients_have_ended() {
    let engine = engine_with(|settings| settings.limits.clients = 232);
    let come = |number: usize| arrive(&engine, NOW, caller(0, 1), (&format!("{number}"), 1));
    let sessions: Vec<_> = (0..100).map_while(|number| come(number).ok()).collect();
    assert_eq!(sessions.len(), 25, "an eighth of the 207 that are left with it, rounded down");
    for session in &sessions {
        let client = Arc::clone(engine.session(session).unwrap().client());
        engine.destroy_session(session, (connection(caller(0, 1)), caller(0, 1))).unwrap();
        engine.destroy_clientid(NOW, client.id(), caller(0, 1)).unwrap();
    }
    let again = (100..200).take_while(|number| come(*number).is_ok()).count();
    assert_eq!(again, sessions.len());
}

/// A few machines behind one address are served even if little is left.
#[test]
fn an_origin_gets_a_few_clients_even_if_little_is_left() {
    let engine = engine_with(|settings| settings.limits.clients = 20);
    for number in 0..16 {
        arrive(&engine, NOW, caller(0, 1), (&format!("{number}"), 1)).unwrap();
    }
    let refused = exchange(&engine, NOW, caller(0, 1), ("one more", 1)).map(drop);
    assert_eq!(refused, Err(Error::Delay));
    serves(&engine, 2);
}

/// Makes sessions with as many slots as it gets, of as many clients as it needs, until one is
/// refused.
fn takes_replies(engine: &Engine, place: u8) {
    let fore = ChannelAttrs { response_cached_bytes_max: 8192, requests_max: 64, ..ATTRS };
    for number in 0..64 {
        let known = exchange(engine, NOW, caller(0, place), (&format!("{place} {number}"), 1));
        let Ok(known) = known else { return };
        let made = (1..=64).take_while(|sequence| {
            session(engine, caller(0, place), (known.clientid, *sequence), fore).is_ok()
        });
        if made.count() == 0 {
            return;
        }
    }
    panic!("no session is refused");
}

fn session(
    engine: &Engine,
    caller: Caller,
    (clientid, sequenceid): (ClientId, u32),
    fore: ChannelAttrs,
) -> Result<SessionId> {
    let args = CreateSession {
        clientid,
        sequenceid,
        caller,
        connection: connection(caller),
        back_wanted: false,
        fore,
        back: ATTRS,
        minor: 1,
        program: 1,
        security: Box::default(),
    };
    engine.create_session(NOW, &args).map(|made| made.session)
}

#[test]
fn an_origin_leaves_memory_for_the_replies_of_others() {
    let engine = engine_with(|_| {});
    takes_replies(&engine, 1);
    let limit = engine.settings().limits.reply_cache_bytes;
    let taken = engine.census().reply_cache_bytes;
    assert!(taken > limit / 3 && taken <= limit / 2 + (1 << 20), "{taken} of {limit}");
    serves(&engine, 2);
}

#[test]
fn several_origins_leave_memory_for_the_replies_of_others() {
    let engine = engine_with(|_| {});
    (1..=GREEDY).for_each(|place| {
        takes_replies(&engine, place);
        println!("origin {place}: {} bytes are given out", engine.census().reply_cache_bytes);
    });
    serves(&engine, 100);
}

/// Makes opens of as many clients as it needs, until one is refused.
fn takes_state(engine: &Engine, place: u8) {
    let greedy = caller(0, place);
    for number in 0..64 {
        let (client, _) = client_41(engine, greedy, &format!("{place} {number}"));
        let opens = (0..200).map(|owner| format!("{owner}").repeat(300)).take_while(|owner| {
            let wish = Wish { caller: greedy, owner: owner.as_bytes(), ..PLAIN };
            try_open(engine, NOW, &client, wish).is_ok()
        });
        if opens.count() < 200 {
            return;
        }
    }
    panic!("no open is refused");
}

#[test]
fn an_origin_leaves_memory_for_the_state_of_others() {
    let engine = engine_with(|settings| settings.limits.held_bytes = 1 << 20);
    takes_state(&engine, 1);
    let taken = engine.census().held_bytes;
    assert!((450_000..=524_288).contains(&taken), "{taken}");
    serves(&engine, 2);
}

/// The limit of this test is about a thousandth of that of a server.
#[test]
fn several_origins_leave_memory_for_the_state_of_others() {
    let engine = engine_with(|settings| settings.limits.held_bytes = 1 << 20);
    (1..=GREEDY).for_each(|place| takes_state(&engine, place));
    serves(&engine, 100);
}

#[test]
fn an_evicted_client_frees_its_own_memory_and_no_more() {
    let engine = engine_with(|_| {});
    let [one, two] = ["one", "two"].map(|name| {
        let (client, _) = client_41(&engine, caller(0, 1), name);
        let before = engine.census().held_bytes;
        try_open(&engine, NOW, &client, Wish { owner: name.as_bytes(), ..PLAIN }).unwrap();
        (client, engine.census().held_bytes - before)
    });
    assert!(one.1 > 0 && two.1 > 0);
    engine.evict(NOW, &one.0);
    assert_eq!(engine.census().held_bytes, two.1);
    engine.evict(NOW, &two.0);
    assert_eq!(engine.census().held_bytes, 0);
}

/// Memory that one client of an origin frees can be used by another one.
#[test]
fn memory_that_a_client_frees_can_be_used_by_its_origin() {
    let engine = engine_with(|settings| settings.limits.held_bytes = 1 << 16);
    let (one, _) = client_41(&engine, caller(0, 1), "one");
    let (two, _) = client_41(&engine, caller(0, 1), "two");
    let fill = |client: &Arc<Client>| {
        let open = |owner: &u32| {
            let owner = format!("{owner}");
            let wish = Wish { caller: caller(0, 1), owner: owner.as_bytes(), ..PLAIN };
            try_open(&engine, NOW, client, wish).is_ok()
        };
        (0..1000).take_while(open).count()
    };
    let most = fill(&one);
    assert!(most > 20, "{most}");
    assert_eq!(fill(&two), 0, "the clients of an origin do not share its quota");
    let one = Person { client: one, has_sessions: true };
    engine.evict(NOW, &one.client);
    assert_eq!(fill(&two), most);
    engine.evict(NOW, &two);
    assert_eq!(engine.census().held_bytes, 0);
}
