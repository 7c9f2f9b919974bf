//! docs/tour-two-sites.md shows what the program prints, to the letter.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::process::Command;

use common::{Place, is_root, run};

/// The folders of the page, in a place of our own under the name they have there, and the two files
/// that it tells of.
const FURNISHED: &str = "set -e
    mount -t tmpfs tmpfs /srv
    sed -n 's/^path = \"\\(.*\\)\"/\\1/p' comity.toml | xargs mkdir -p
    cd /srv/plans
    touch bridge diary
    chmod 660 bridge; chown 101005:100100 bridge
    chmod 600 diary; chown 101005:101005 diary
    cd - > /dev/null
    set +e
";

#[test]
fn the_tour_shows_what_the_program_prints() {
    let may_mount =
        || Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|it| it.success());
    if !is_root() || !may_mount() {
        eprintln!("skipped: it needs a mount namespace of its own (root, unshare)");
        return;
    }
    let page = include_str!("../../../docs/tour-two-sites.md");
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    let place = Place::new();
    place.write("comity.toml", blocks[0].strip_prefix("toml\n").unwrap());
    let shown: String = blocks
        .iter()
        .filter_map(|block| block.strip_prefix('\n'))
        .filter(|block| block.starts_with("$ comity "))
        .collect();
    let commands: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert_eq!(commands.len(), 6);
    let asked = commands.iter().map(|command| format!("echo '$ {command}'; {command} 2>&1\n"));
    let script = FURNISHED.to_owned() + &asked.collect::<String>();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_comity")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).env("PATH", path).current_dir(place.path("."));
    let said = run(&mut command);
    assert_eq!(said.out, shown, "{}", said.err);
}
