//! The commands of docs/tour-migrate.md, whose output is compared with the page.

use std::fs;

use anyhow::Result;

use super::Test;
use super::tour_page::{TourPage, replace_all};
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

const PAGE: TourPage = TourPage {
    path: "docs/tour-migrate.md",
    text: include_str!("../../../../docs/tour-migrate.md"),
    places: &["a", "b", "client"],
};

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

fn prepare(ground: &Ground) -> Result<()> {
    fs::write(ground.export().join("paper"), "to read\n")?;
    ground.give(&[("tour.sh", &PAGE.script(as_run)?)])
}

fn as_run(place: &str, command: &str) -> String {
    let real = replace_all(command, &NAMES);
    let state = if place == "a" { "$STATE" } else { "$STATE-b" };
    match place {
        "client" => format!("{{ {real}\n}} 2>&1"),
        _ => format!("ask 'admin comity() {{ $COMITY \"$@\" --state-dir {state}; }}; {real}'"),
    }
}

fn verify(ground: &Ground) -> Result<()> {
    let export = ground.export().display().to_string();
    let printed = ground.written("shown")?.replace(&export, "/srv/data");
    PAGE.compare(&printed.replace("10.77.0.", "192.0.2."))
}
