//! `comity explain`: the answer to a client of another site with the line that decides, from a file
//! and from a server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use common::{Place, Running, Said, comity, is_root, run};
use serde_json::Value;

/// An export with an id map and a cloak, for loopback.
fn configured(place: &Place) -> String {
    format!(
        "[[domain]]\nname = \"north\"\nclients = [\"127.0.0.1\"]\n\
         options = [\"rw\", \"insecure\", \"no_client_cache\"]\n\
         users = [\"1000-1999:51000-51999\"]\ngroups = [\"100-199:52100-52199\"]\n\
         cloaks = [\"uid=51000-51999:+000\"]\n\
         [[export]]\npath = {:?}\ndomains = [\"north\"]\n",
        place.data()
    )
}

fn explain(place: &Place, path: &str, uid: &str, rest: &[&str]) -> Said {
    let mut command = comity();
    command.arg("explain").arg(place.data()).arg(path).args(["--from", "127.0.0.1"]);
    run(command.args(["--uid", uid, "--gid", "105", "--groups", "150,7"]).args(rest))
}

fn owned(path: &Path, uid: u32) {
    fs::write(path, "x").unwrap();
    chown(path, Some(uid), Some(52_105)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn each_decision_is_explained_with_its_line() {
    if !is_root() {
        eprintln!("skipped: it needs root to give files away");
        return;
    }
    let place = Place::new();
    let config = place.write("comity.toml", &configured(&place));
    owned(&place.data().join("secret"), 51_006);
    let config = config.to_str().unwrap();
    let said = explain(&place, "secret", "1005", &["--op", "read", "--config", config]);
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""), "{}", said.out);
    for expected in [
        format!(
            "client               127.0.0.1 comes in as 127.0.0.1 of domain north  [{config}:3:12]"
        ),
        format!(
            "user                 uid 1005 is uid 51005 of the server, by its range  \
             [{config}:5:10]"
        ),
        "supplementary group  gid 7 is in no range and dropped\n".into(),
        "acts as              uid 51005, gid 52105, supplementary groups: 52150\n".into(),
        format!("is hidden by the cloak  [{config}:7:11]"),
        "answer               NFS3ERR_NOENT: no such file or directory\n".into(),
    ] {
        assert!(said.out.contains(&expected), "{expected}\n{}", said.out);
    }
    let said = explain(&place, "secret", "1006", &["--op", "read", "--config", config, "--json"]);
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &answer["status"]), (Some(0), &"NFS3_OK".into()));
    assert_eq!(
        (&answer["decisions"][2]["file"], &answer["decisions"][2]["line"]),
        (&config.into(), &5.into())
    );
}

#[test]
fn a_running_server_explains_the_plan_that_is_in_force() {
    let place = Place::new();
    let config = place.write("comity.toml", &configured(&place));
    let server = Running::start(place.serve(&["--config"]).arg(&config));
    fs::write(&config, "broken").unwrap();
    let state = place.state();
    let state = ["--live", "--state-dir", state.to_str().unwrap()];
    let said = explain(&place, ".", "1005", &state);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    assert!(said.out.contains("uid 1005 is uid 51005 of the server"), "{}", said.out);
    let said = explain(&place, "missing", "1005", &state);
    assert_eq!(said.code, Some(1));
    assert!(said.out.ends_with("NFS3ERR_NOENT: no such file or directory\n"), "{}", said.out);
    assert!(server.stop().success());
}

#[test]
fn an_unknown_operation_is_a_usage_error() {
    let said = explain(&Place::new(), "x", "1", &["--op", "chew"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("is none of stat, read, write, execute, list"), "{}", said.err);
}
