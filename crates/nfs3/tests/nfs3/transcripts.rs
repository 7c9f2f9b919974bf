//! Transcripts: each file under `transcripts` has commands for a new server. Lines that begin with
//! two blanks are its answers; `#` begins a comment.

use std::path::Path;

use crate::script::Script;
use crate::world::{Ground, World};

fn holds(name: &str) {
    holds_on(name, Ground::default());
}

fn holds_on(name: &str, ground: Ground) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nfs3/transcripts");
    let path = folder.join(name).with_extension("txt");
    let expected = std::fs::read_to_string(&path).unwrap();
    let world = World::new(ground);
    let mut script = Script::new(&world);
    let mut found = String::new();
    for line in expected.lines().filter(|line| !line.starts_with("  ")) {
        found += line;
        found.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(answer) = script.line(line) {
            found += &format!("  {answer}\n");
        }
    }
    if found != expected {
        let at = found.lines().zip(expected.lines()).take_while(|(one, other)| one == other);
        let at = at.count();
        let (found, expected) = (found.lines().nth(at), expected.lines().nth(at));
        panic!("{name}.txt:{}:\n expected {expected:?}\n found    {found:?}", at + 1);
    }
}

#[test]
fn attributes() {
    holds("attributes");
}

#[test]
fn names() {
    holds("names");
}

#[test]
fn data() {
    holds("data");
}

#[test]
fn making() {
    holds("making");
}

#[test]
fn removing() {
    holds("removing");
}

#[test]
fn renaming_and_linking() {
    holds("renaming");
}

#[test]
fn listing() {
    holds("listing");
}

#[test]
fn file_system() {
    holds("file_system");
}

#[test]
fn handles() {
    holds("handles");
}

#[test]
fn read_only() {
    let mut ground = Ground::default();
    ground.rules.read_only = true;
    holds_on("read_only", ground);
}

#[test]
fn no_readdirplus() {
    let mut ground = Ground::default();
    ground.rules.readdirplus = false;
    holds_on("no_readdirplus", ground);
}

#[test]
fn a_full_disk() {
    let mut ground = Ground::default();
    ground.memory.bytes_max = 32 << 10;
    holds_on("full", ground);
}
