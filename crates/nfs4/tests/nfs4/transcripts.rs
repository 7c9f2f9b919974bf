//! Transcripts: each file under `transcripts` has commands for a new server. Lines that begin with
//! two blanks are its answers; `#` begins a comment. With `BLESS` in the environment the answers
//! are written again; read them before a commit.

use std::path::Path;

use crate::script::Script;
use crate::world::{World, sites};

fn holds(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nfs4/transcripts");
    let path = folder.join(name).with_extension("txt");
    let expected = std::fs::read_to_string(&path).unwrap();
    let world = if name == "owners" { sites() } else { World::new() };
    let mut script = Script::new(&world);
    let mut found = String::new();
    for line in expected.lines().filter(|line| !line.starts_with("  ")) {
        found += &format!("{line}\n");
        if !line.is_empty() && !line.starts_with('#') {
            script.line(line).iter().for_each(|answer| found += &format!("  {answer}\n"));
        }
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    if found != expected {
        let at = found.lines().zip(expected.lines()).take_while(|(one, other)| one == other);
        let at = at.count();
        let (found, expected) = (found.lines().nth(at), expected.lines().nth(at));
        panic!("{name}.txt:{}:\n expected {expected:?}\n found    {found:?}", at + 1);
    }
}

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            holds(stringify!($name));
        }
    )*};
}

transcripts!(compound, walking, attributes, names, listing, data, extended, sparse, acls, owners);
