//! Transcripts: text in, text out. A line that begins with `>` is said to the engine; what is below
//! it, up to the next, is what came of it. Run with `BLESS=1` they are written again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod files;
mod inventory;
mod people;
mod requests;
mod world;

use std::fmt::Write;
use std::path::Path;

use world::World;

fn replay(text: &str) -> String {
    let (mut world, mut out) = (World::new(), String::new());
    for line in text.lines() {
        match line.strip_prefix("> ") {
            Some(said) => {
                writeln!(out, "> {said}").unwrap();
                for told in world.say(said) {
                    writeln!(out, "  {told}").unwrap();
                }
            }
            // The results of the last run are written again.
            None if line.starts_with("  ") => {}
            None => writeln!(out, "{line}").unwrap(),
        }
    }
    out
}

fn transcript(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let now = replay(&text);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    } else {
        assert!(text == now, "{name} says otherwise now:\n{now}");
    }
}

#[test]
fn clients_introduce_themselves() {
    transcript("clients.txt");
}

#[test]
fn sessions_do_requests_once() {
    transcript("sessions.txt");
}

#[test]
fn slots_are_asked_back_where_memory_is_short() {
    transcript("slots.txt");
}

#[test]
fn files_are_opened_by_every_claim() {
    transcript("opens.txt");
}

#[test]
fn owners_count_their_operations() {
    transcript("owners.txt");
}

#[test]
fn locks_are_handed_over() {
    transcript("locks.txt");
}

#[test]
fn delegations_are_recalled() {
    transcript("delegations.txt");
}

#[test]
fn directories_are_delegated_and_recalled() {
    transcript("directories.txt");
}

#[test]
fn delegations_are_asked_back_before_none_is_left() {
    transcript("recall_any.txt");
}

#[test]
fn programs_on_the_server_wait() {
    transcript("programs.txt");
}

#[test]
fn grace_has_edges() {
    transcript("grace.txt");
}

#[test]
fn state_of_clients_can_be_listed() {
    transcript("inventory.txt");
}

#[test]
fn leases_end_with_courtesy() {
    transcript("leases.txt");
}

#[test]
fn state_ends_with_the_right_that_it_rests_on() {
    transcript("rights.txt");
}
