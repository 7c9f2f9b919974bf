//! Transcripts. A line that begins with `>` is a command for the engine; the lines below it, up to
//! the next command, are its results. A run with `BLESS=1` writes the results again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod directories;
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
            // Results of the last run are left out; the commands write new ones.
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
        assert!(text == now, "{name} has other results:\n{now}");
    }
}

#[test]
fn clients_introduce_themselves() {
    transcript("clients.txt");
}

#[test]
fn sessions_do_each_request_once() {
    transcript("sessions.txt");
}

#[test]
fn slots_are_recalled_when_memory_is_short() {
    transcript("slots.txt");
}

#[test]
fn files_are_opened_by_every_claim() {
    transcript("opens.txt");
}

#[test]
fn operations_of_owners_are_numbered() {
    transcript("owners.txt");
}

#[test]
fn locks_are_passed_to_waiters() {
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
fn changes_of_directories_are_notified() {
    transcript("notices.txt");
}

#[test]
fn delegations_are_recalled_before_their_limit_is_reached() {
    transcript("recall_any.txt");
}

#[test]
fn programs_on_the_server_wait() {
    transcript("programs.txt");
}

#[test]
fn grace_handles_the_edge_conditions() {
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
