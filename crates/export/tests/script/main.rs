//! Transcripts of exports. Lines that begin with `|` are a configuration. A line that begins with
//! `>` is a command, and the lines below it, up to the next command, are its results. A run with
//! `BLESS=1` writes the results again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod caller;
mod hosts;
mod objects;
mod world;

use std::fmt::Write;
use std::path::Path;

use world::World;

fn replay(text: &str) -> String {
    let (mut world, mut out) = (World::new(), String::new());
    for line in text.lines() {
        // Results of the last run are left out; the commands write new ones.
        if line.starts_with("  ") {
            continue;
        }
        writeln!(out, "{line}").unwrap();
        if let Some(configured) = line.strip_prefix('|') {
            world.configure(configured.strip_prefix(' ').unwrap_or(configured));
        }
        for result in line.strip_prefix("> ").map(|said| world.run(said)).into_iter().flatten() {
            writeln!(out, "  {result}").unwrap();
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
        let lines = text.lines().zip(now.lines());
        let other = lines.enumerate().find(|(_, (was, is))| was != is);
        assert!(text == now, "{name} has other results, first in {other:?}:\n{now}");
    }
}

#[test]
fn options_change_the_rules_that_they_name() {
    transcript("options.txt");
}

#[test]
fn mistakes_in_a_configuration_are_reported_with_their_place() {
    transcript("mistakes.txt");
}

#[test]
fn unwise_configurations_are_loaded_with_a_warning() {
    transcript("warnings.txt");
}

#[test]
fn the_most_specific_entry_decides_for_a_client() {
    transcript("clients.txt");
}

#[test]
fn squashing_decides_under_which_ids_a_caller_acts() {
    transcript("squash.txt");
}

#[test]
fn range_maps_translate_ids_in_both_directions() {
    transcript("maps.txt");
}

#[test]
fn cloaks_hide_objects_from_each_operation() {
    transcript("cloaks.txt");
}

#[test]
fn a_reload_keeps_what_it_does_not_change() {
    transcript("reload.txt");
}

#[test]
fn an_explanation_names_each_rule_that_decides() {
    transcript("explain.txt");
}
