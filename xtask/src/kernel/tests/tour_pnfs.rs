//! The commands of docs/tour-pnfs.md, whose output is compared with the page.

use std::fs;

use anyhow::{Context, Result};

use super::Test;
use super::tour_page::{TourPage, replace_all};
use crate::kernel::data_servers;
use crate::kernel::ground::Ground;

pub(super) const TEST: Test = Test {
    name: "tour-pnfs",
    about: "the commands of docs/tour-pnfs.md print what the page says",
    script: include_str!("tour_pnfs.sh"),
    version: "4.1",
    takes_tls: false,
    idle_hosts: 5,
    prepare,
    verify,
    ..Test::EMPTY
};

const PAGE: TourPage = TourPage {
    path: "docs/tour-pnfs.md",
    text: include_str!("../../../../docs/tour-pnfs.md"),
    places: &["mds", "a", "b", "c", "d", "e", "client"],
};

/// The names of the page, and what they are in the test.
const NAMES: [(&str, &str); 7] = [
    ("mds:/srv/big", "$SERVER:$EXPORT"),
    ("/srv/big", "$EXPORT"),
    // The servers of the test are registered with no rpcbind.
    ("vers=3,", "vers=3,proto=tcp,port=2049,mountproto=tcp,mountport=2049,"),
    ("comity serve", "$COMITY serve --no-register"),
    ("/etc/comity/placement.key", "$PLACEMENT_KEY"),
    ("/etc/comity.toml", "$CONFIG"),
    ("192.0.2.", "10.77.0."),
];

/// The command of the page that restarts the metadata server.
const RESTART: &str = "systemctl restart comity";

/// The command `comity` on the host of the metadata server.
const COMITY: &str = "comity() { $COMITY \"$@\" --state-dir $STATE; }";

/// Writes the script, and the configuration that the page shows.
fn prepare(ground: &Ground) -> Result<()> {
    fs::write(ground.export().join("readme"), "it was here before\n")?;
    let export = ground.export().display().to_string();
    let configuration = PAGE.blocks("toml").next().context("the page has no configuration")?;
    let key = data_servers::key(&ground.folder().join("server")).display().to_string();
    let names =
        [("/srv/big", &*export), ("/etc/comity/placement.key", &*key), ("192.0.2.", "10.77.0.")];
    let configuration = replace_all(configuration, &names);
    ground.give(&[("tour.sh", &PAGE.script(as_run)?), ("comity.toml", &configuration)])
}

fn as_run(place: &str, command: &str) -> String {
    let real = replace_all(command, &NAMES);
    match place {
        "client" => format!("{{ {real}\n}} 2>&1"),
        "mds" if command == RESTART => "ask end-and-start".to_owned(),
        "mds" => request("admin", &format!("{COMITY}; {real}")),
        host => request(&format!("on {host}"), &real),
    }
}

/// Asks for a script to be run, which may fail, as the page may show that.
fn request(verb: &str, script: &str) -> String {
    let script = format!("exec 2>&1; {script}\ntrue").replace('\'', r"'\''");
    format!("ask '{verb} {script}'")
}

fn verify(ground: &Ground) -> Result<()> {
    let export = ground.export().display().to_string();
    let config = data_servers::config(&ground.folder().join("server")).display().to_string();
    let names = [(&*config, "/etc/comity.toml"), (&*export, "/srv/big"), ("10.77.0.", "192.0.2.")];
    PAGE.compare(&replace_all(&ground.written("shown")?, &names))
}
