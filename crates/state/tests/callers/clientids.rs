//! Clientids cannot be guessed, and each is given to one client only.

use std::collections::HashSet;

use comity_state::{ClientId, Engine, Error, Recovered, Settings};

use crate::people::{
    NAME, NOW, STRANGER, VICTIM, announce, caller, client_40, engine, engine_with, exchange,
};

/// The clientids of `count` clients, each at an address of its own.
fn given_out(engine: &Engine, count: u32) -> Vec<ClientId> {
    let each = (0..count).map(|number| {
        let caller = caller(0, (number % 251) as u8);
        exchange(engine, NOW, caller, (&format!("client {number}"), 1)).unwrap().clientid
    });
    each.collect()
}

#[test]
fn a_thousand_clientids_are_far_from_each_other() {
    let ids = given_out(&engine(), 1000);
    let highs: HashSet<u32> = ids.iter().map(|id| (id.0 >> 32) as u32).collect();
    // Two of 1000 random numbers of 32 bits are equal in one of 8600 cases.
    assert!(highs.len() >= 999, "{} high halves", highs.len());
    let mut lows: Vec<u32> = ids.iter().map(|id| id.number()).collect();
    let follow = |pair: &&[u32]| pair[1].wrapping_sub(pair[0]).wrapping_add(16) <= 32;
    let next = lows.windows(2).filter(follow).count();
    lows.sort_unstable();
    let neighbours = lows.windows(2).filter(|pair| pair[1] - pair[0] <= 1).count();
    // Random numbers would have 0.0002 neighbors, and fewer that follow a near one.
    assert!(next == 0 && neighbours <= 1, "{next} {neighbours}");
}

#[test]
fn a_clientid_with_one_bit_flipped_names_no_client() {
    let engine = engine();
    let id = client_40(&engine, VICTIM, NAME).id();
    assert!(engine.client_by_id(id).is_some());
    for bit in 0..64 {
        let guess = ClientId(id.0 ^ 1 << bit);
        assert!(engine.client_by_id(guess).is_none(), "bit {bit}");
        let renewed = engine.renew(NOW, guess, VICTIM);
        assert_eq!(renewed, Err(Error::StaleClientid), "bit {bit}");
    }
}

/// The clientids of one run of the server must not reveal those of the next.
#[test]
fn clientids_of_one_run_of_the_server_do_not_reveal_those_of_the_next() {
    let of_life = |boot| {
        let engine = Engine::new(NOW, Settings::new(boot, [7; 16]), Recovered::new());
        given_out(&engine, 100)
    };
    let (before, after) = (of_life(5), of_life(6));
    let numbers = |ids: &[ClientId]| ids.iter().map(|id| id.number()).collect::<HashSet<_>>();
    assert_eq!(numbers(&before).intersection(&numbers(&after)).count(), 0);
    let changes = before.iter().zip(&after).map(|(before, after)| (before.0 ^ after.0) >> 32);
    let changes: HashSet<u64> = changes.collect();
    assert!(changes.len() >= 99, "the high halves change alike: {}", changes.len());
}

/// Nor must the verifiers that SETCLIENTID_CONFIRM needs.
#[test]
fn verifiers_of_one_run_of_the_server_do_not_reveal_those_of_the_next() {
    let of_life = |boot| {
        let engine = Engine::new(NOW, Settings::new(boot, [7; 16]), Recovered::new());
        announce(&engine, NOW, VICTIM, (NAME, 1)).unwrap().confirm
    };
    assert_ne!(of_life(5), of_life(6));
}

/// The clientid of a client that has ended must not be given to another one: a caller that still
/// uses it would be taken for that client.
#[test]
fn a_clientid_is_given_out_once_in_a_run_of_the_server() {
    let engine = engine_with(|settings| settings.limits.clients = 8);
    let mut known = HashSet::new();
    // If they were random, two of this number of clientids of 32 bits would probably be equal.
    for instance in 0..80_000_u32 {
        let name = format!("{instance}");
        let id = exchange(&engine, NOW, STRANGER, (&name, 1)).unwrap().clientid;
        assert!(known.insert(id.number()), "{id} was given out before, of {instance}");
    }
}

/// LOCK4denied names the holder by an alias that no operation accepts as a clientid.
#[test]
fn a_denied_lock_names_its_holder_by_an_alias_that_is_no_clientid() {
    let engine = engine();
    let ids = [NAME, "other"].map(|name| client_40(&engine, VICTIM, name).id());
    let aliases = ids.map(|id| engine.alias(id));
    assert_ne!(aliases[0], aliases[1]);
    assert_eq!(ids.map(|id| engine.alias(id)), aliases);
    for alias in aliases {
        let is_near = |id: &ClientId| id.0 as u32 == alias as u32 || id.0 >> 32 == alias >> 32;
        assert!(!ids.iter().any(is_near));
        assert!(engine.client_by_id(ClientId(alias)).is_none());
    }
}
