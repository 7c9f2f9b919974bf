//! Reasons for which a server does not become a head.

use std::fs;
use std::time::Duration;

use crate::common::{Place, comity, run};
use crate::heads::Heads;

#[test]
fn a_head_with_another_key_of_handles_is_refused() {
    let Some(mut heads) = Heads::new(Duration::from_secs(90)) else { return };
    heads.kill(1);
    fs::write(heads.state(1).join("handle.key"), [7; 16]).unwrap();
    let said = run(&mut heads.command(1));
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("copy the file from another head"), "{}", said.err);
}

#[test]
fn a_second_server_with_the_name_of_a_head_is_refused() {
    let Some(heads) = Heads::new(Duration::from_secs(90)) else { return };
    let said = run(&mut heads.command_of_third("b"));
    assert!(said.err.contains("another server is the head b"), "{}", said.err);
}

#[test]
fn an_export_inside_another_is_refused() {
    let Some(heads) = Heads::new(Duration::from_secs(90)) else { return };
    let nested = heads.place.data().join("one/below");
    fs::create_dir(&nested).unwrap();
    let config = heads.place.path("heads.toml");
    let text = fs::read_to_string(&config).unwrap();
    let more = format!(
        "[[export]]\npath = {nested:?}\noptions = [\"rw\"]\n\
         clients = [{{ client = \"127.0.0.1\" }}]\n"
    );
    fs::write(&config, text + &more).unwrap();
    let said = run(&mut heads.command_of_third("c"));
    assert!(said.err.contains("it is inside another export"), "{}", said.err);
}

#[test]
fn a_cluster_without_etcd_or_without_a_name_is_an_error() {
    let place = Place::new();
    let serve = |arguments: &[&str]| {
        let mut command = comity();
        command.arg("serve").arg(place.data()).args(arguments);
        run(command.arg("--state-dir").arg(place.state())).err
    };
    let said = serve(&["--cluster", "http://127.0.0.1:1"]);
    assert!(said.contains("add --head NAME"), "{said}");
    let said = serve(&["--head", "a"]);
    assert!(said.contains("add --cluster URL"), "{said}");
    let said = serve(&["--head", "a", "--cluster", "http://127.0.0.1:1", "--port", "0"]);
    assert!(said.contains("no member of etcd answers"), "{said}");
    let said = serve(&["--head", "a", "--cluster", "127.0.0.1:2379", "--port", "0"]);
    assert!(said.contains("is no address of etcd"), "{said}");
}
