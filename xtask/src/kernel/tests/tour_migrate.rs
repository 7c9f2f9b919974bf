//! The commands of docs/tour-migrate.md, whose output is compared with the page.

use std::fmt::Write;
use std::fs;

use anyhow::{Result, ensure};

use super::Test;
use crate::kernel::ground::Ground;

pub(super) const TEST: Test = Test {
    name: "tour-migrate",
    about: "the commands of docs/tour-migrate.md print what the page says",
    script: include_str!("tour_migrate.sh"),
    version: "4.2",
    takes_tls: false,
    arguments: &["--no-register", "--no-local-locks"],
    has_other_server: true,
    prepare,
    verify,
    ..Test::EMPTY
};

const PAGE: &str = include_str!("../../../../docs/tour-migrate.md");

/// The names of the page, and what they are in the test.
const NAMES: [(&str, &str); 7] = [
    ("a:/srv/data", "$SERVER:$EXPORT"),
    ("/srv/data", "$EXPORT"),
    // The servers of the test are registered with no rpcbind.
    ("vers=3,", "vers=3,proto=tcp,port=2049,mountproto=tcp,mountport=2049,"),
    ("/mnt/data", "/mnt/nfs"),
    ("/mnt/again", "/run/again"),
    ("192[", "10[.]77[.]0["),
    ("/tmp/", "/mnt/job/"),
];

const UNITS: [&str; 4] = ["ms", "s", "bytes", "KiB"];

/// The lines of the blocks of the page that show commands.
fn shown() -> impl Iterator<Item = &'static str> {
    let blocks = PAGE.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix('\n')).flat_map(str::lines)
}

/// Returns where a command runs, and the command, if a line begins with a prompt.
fn command(line: &'static str) -> Option<(&'static str, &'static str)> {
    line.split_once("$ ").filter(|(place, _)| ["a", "b", "client"].contains(place))
}

/// Writes a script that prints each command and what it prints.
fn prepare(ground: &Ground) -> Result<()> {
    fs::write(ground.export().join("paper"), "to read\n")?;
    let mut script = String::new();
    for (place, command) in shown().filter_map(command) {
        writeln!(script, "cat << 'END'\n{place}$ {command}\nEND")?;
        let real = NAMES.iter().fold(command.to_owned(), |it, (name, real)| it.replace(name, real));
        let state = if place == "a" { "$STATE" } else { "$STATE-b" };
        match place {
            "client" => writeln!(script, "{{ {real}\n}} 2>&1")?,
            _ => writeln!(
                script,
                "ask 'admin comity() {{ $COMITY \"$@\" --state-dir {state}; }}; {real}'"
            )?,
        }
    }
    ground.give(&[("tour.sh", &script)])
}

fn verify(ground: &Ground) -> Result<()> {
    let export = ground.export().display().to_string();
    let printed = ground.written("shown")?.replace(&export, "/srv/data");
    let printed = printed.replace("10.77.0.", "192.0.2.");
    let page: String = shown().flat_map(|line| [line, "\n"]).collect();
    let (printed, page) = (normalized(&printed), normalized(&page));
    ensure!(
        printed == page,
        "docs/tour-migrate.md shows:\n{page}\nand this was printed:\n{printed}"
    );
    Ok(())
}

/// Replaces what differs between runs: numbers before units of time and size, and clientids. Blanks
/// between columns are as many as the longest value needs.
fn normalized(text: &str) -> String {
    text.lines().map(|line| normalized_line(line) + "\n").collect()
}

fn normalized_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let has_unit = |at: usize| words.get(at + 1).is_some_and(|word| UNITS.contains(word));
    let level = |(at, word): (usize, &&str)| match word.parse::<f64>() {
        Ok(_) if has_unit(at) => "N".to_owned(),
        _ if is_clientid(word) => "CLIENTID".to_owned(),
        _ => (*word).to_owned(),
    };
    words.iter().enumerate().map(level).collect::<Vec<_>>().join(" ")
}

fn is_clientid(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}
