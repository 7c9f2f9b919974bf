//! Servers start, fail to start, reload and end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use common::raw::Raw;
use common::{NOBODY, Place, Running, is_root, run, wait_until};
use rustix::process::Signal;

/// Asserts that a server does not start, and that one line says why and what to do about it.
fn refused(command: &mut std::process::Command, why: &str, remedy: &str) {
    let said = run(command);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{}", said.err);
    let line = said.err.lines().last().unwrap_or_default();
    assert!(line.starts_with("comity: "), "{}", said.err);
    assert!(line.contains(why) && line.contains(remedy), "{}", said.err);
}

#[test]
fn a_folder_alone_is_served_to_this_machine_only() {
    let place = Place::new();
    let server = Running::start(&mut place.serve_data());
    let export = &server.said["exports"][0];
    assert_eq!(export["path"], place.data().to_str().unwrap());
    let clients: Vec<&str> = export["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|client| client["client"].as_str().unwrap())
        .collect();
    assert_eq!(clients, ["::1", "127.0.0.0/8"]);
    for client in export["clients"].as_array().unwrap() {
        let options = client["options"].as_str().unwrap();
        assert!(options.starts_with("rw,sync,insecure,root_squash,no_all_squash"), "{options}");
    }
    let port = server.port;
    let data = place.data();
    let mount =
        format!("mount -t nfs -o vers=4.2,proto=tcp,port={port} 127.0.0.1:{} /mnt", data.display());
    assert_eq!(export["mount"], mount);
    assert!(Raw::connect(port, NOBODY).mount(&place.data()).is_ok());
}

#[test]
fn the_mount_command_of_an_export_has_the_channel_that_asks_least_of_a_client() {
    let channels = ["xprtsec=mtls", "xprtsec=mtls:tls", "xprtsec=none:mtls", "xprtsec=tls"];
    let options = [",xprtsec=mtls ", ",xprtsec=tls ", " ", ",xprtsec=tls "];
    for (channel, option) in channels.into_iter().zip(options) {
        let place = Place::new();
        let line = format!("{} 127.0.0.1(rw,insecure,{channel})", place.data().display());
        let exports = place.write("exports", &line);
        let server = Running::start(place.serve(&["--exports"]).arg(exports));
        let mount = server.said["exports"][0]["mount"].as_str().unwrap();
        let expected = format!("port={}{option}", server.port);
        assert!(mount.contains(&expected), "{channel}: {mount}");
    }
}

#[test]
fn a_folder_named_twice_is_one_export() {
    let place = Place::new();
    let again = place.data().join(".");
    let server = Running::start(place.serve_data().arg(again));
    assert_eq!(server.said["exports"].as_array().map(Vec::len), Some(1), "{}", server.said);
    assert!(server.stop().success());
}

#[test]
fn without_listen_the_server_is_on_loopback_only_unless_others_are_allowed() {
    let place = Place::new();
    let addresses = |allow: &[&str]| {
        let mut command = common::comity();
        command.args(["serve", "--json", "--port", "0", "--no-register", "--state-dir"]);
        command.arg(place.state()).arg(place.data()).args(allow);
        let server = Running::start(&mut command);
        let listen = server.said["listen"].as_array().unwrap().clone();
        listen.iter().map(|address| address.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let local =
        |address: &String| address.starts_with("127.0.0.1:") || address.starts_with("[::1]:");
    assert!(addresses(&[]).iter().all(local));
    let wide = |address: &String| address.starts_with("[::]:") || address.starts_with("0.0.0.0:");
    assert!(addresses(&["--allow", "192.0.2.0/24"]).iter().all(wide));
}

#[test]
fn the_start_prints_the_command_that_mounts_the_export() {
    let place = Place::new();
    let mut command = common::comity();
    command.args(["serve", "--port", "0", "--no-register", "--state-dir"]).arg(place.state());
    let mut child = command
        .arg(place.data())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let text: Vec<String> = lines
        .by_ref()
        .map_while(Result::ok)
        .take_while(|line| !line.starts_with("State in"))
        .collect();
    let _ = child.kill();
    let _ = child.wait();
    let text = text.join("\n");
    for expected in [
        &format!("Serving {}", place.data().display()),
        "to 127.0.0.0/8: read and write, root becomes 65534:65534, any port",
        "mount -t nfs -o vers=4.2,proto=tcp,port=",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn a_missing_folder_and_a_file_are_refused() {
    let place = Place::new();
    let file = place.write("file", "");
    refused(
        place.serve(&[]).arg(place.path("missing")),
        "missing: create the folder",
        "No such file",
    );
    refused(place.serve(&[]).arg(file), "is not a folder", "name the folder that contains it");
}

#[test]
fn a_port_in_use() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut command = common::comity();
    command.args(["serve", "--listen", "127.0.0.1", "--no-register", "--state-dir"]);
    command.arg(place.state()).args(["--port", &port]).arg(place.data());
    refused(&mut command, &format!("port {port} is in use"), "--port");
}

#[test]
fn a_port_in_use_for_metrics_web_or_the_portmapper() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = address.rsplit(':').next().unwrap();
    let in_use = format!("port {port} is in use");
    refused(place.serve_data().args(["--metrics", &address]), &in_use, "with --metrics");
    refused(place.serve_data().args(["--web", &address]), &in_use, "with --web");

    let taken = TcpListener::bind("127.0.0.1:111");
    if taken.as_ref().is_err_and(|error| error.kind() != std::io::ErrorKind::AddrInUse) {
        eprintln!("skipped: port 111 cannot be taken by this user");
        return;
    }
    let mut command = common::comity();
    command.args(["serve", "--listen", "127.0.0.1", "--port", "0", "--portmap", "--state-dir"]);
    command.arg(place.state()).arg(place.data());
    refused(&mut command, "a portmapper listens at 127.0.0.1:111 already", "leave --portmap out");
}

#[test]
fn a_port_that_an_ordinary_user_may_not_take() {
    let start = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let start = start.ok().and_then(|text| text.trim().parse::<u16>().ok());
    if !is_root() || start.is_some_and(|start| start <= 1000) {
        eprintln!("skipped: every user may take every port here, or none can be tried");
        return;
    }
    let place = Place::new();
    let (data, state) = (place.data(), place.data().join("state"));
    let mut command = place.as_nobody(&["serve", "--port", "999", "--state-dir"]);
    refused(command.arg(state).arg(data), "ports below 1024 need root", "--port");
}

#[test]
fn an_address_that_this_machine_does_not_have() {
    let place = Place::new();
    let mut command = place.serve_data();
    refused(command.args(["--listen", "192.0.2.1"]), "192.0.2.1", "no interface");
}

#[test]
fn a_state_folder_that_cannot_be_made() {
    let place = Place::new();
    let file = place.write("file", "");
    let mut command = common::comity();
    command.arg("serve").arg(place.data()).arg("--state-dir").arg(file.join("state"));
    refused(&mut command, "cannot make the state folder", "--state-dir");
}

#[test]
fn an_ordinary_user_without_permission() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("private")).unwrap();
    fs::set_permissions(place.path("private"), fs::Permissions::from_mode(0o700)).unwrap();
    let private = place.path("private");
    let private = private.to_str().unwrap();
    let data = place.data();
    let data = data.to_str().unwrap();
    let mut command = place.as_nobody(&["serve", data, "--state-dir", private]);
    refused(&mut command, "cannot write to the state folder", "--state-dir");
    let state = place.data().join("state");
    let state = state.to_str().unwrap();
    let mut command = place.as_nobody(&["serve", private, "--port", "0", "--state-dir", state]);
    refused(&mut command, "permission denied", "let the server's user");
}

#[test]
fn an_ordinary_user_serves_with_its_own_rights() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let place = Place::new();
    let (data, state) = (place.data(), place.data().join("state"));
    let arguments = ["serve", "--json", "--port", "0", "--state-dir"];
    let mut command = place.as_nobody(&arguments);
    let server = Running::start(command.arg(&state).arg(&data));
    assert_eq!(server.said["callers"], "the server's user");
    assert_eq!(server.said["user"], NOBODY);
    let mut somebody = Raw::connect(server.port, 1234);
    let root = somebody.mount(&data).unwrap();
    somebody.create(&root, "new", [1; 8]).unwrap();
    let made = fs::metadata(data.join("new")).unwrap();
    assert_eq!((made.uid(), made.gid()), (NOBODY, NOBODY));
    assert!(server.stop().success());
}

#[test]
fn root_without_the_capability_to_act_as_its_callers_is_refused() {
    let place = Place::new();
    let without = |mut command: std::process::Command| {
        let mut limited = std::process::Command::new("setpriv");
        limited.args(["--bounding-set=-setuid", "--inh-caps=-setuid"]);
        limited.arg(command.arg(place.data()).get_program()).args(command.get_args());
        limited
    };
    let is_there = std::process::Command::new("setpriv").arg("--version").output().is_ok();
    if !is_root() || !is_there {
        eprintln!("skipped: only root can give up capabilities, by setpriv");
        return;
    }
    refused(&mut without(place.serve(&[])), "everybody would have root's rights", "CAP_SETUID");
    let server = Running::start(&mut without(place.serve(&["--all-as-root"])));
    assert_eq!(server.said["callers"], "the server's user");
    assert!(server.stop().success());
}

#[test]
fn a_missing_export_folder_is_logged_and_the_server_keeps_running() {
    const STALE: u32 = 70;
    let place = Place::new();
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    let file = place.write("my.exports", &exports(&[&place.data(), &other]));
    let log = fs::File::create(place.path("log")).unwrap();
    let server = Running::start_with_log(place.serve(&["--exports"]).arg(&file), log);
    let mut client = Raw::connect(server.port, NOBODY);
    let (gone, there) = (client.mount(&place.data()).unwrap(), client.mount(&other).unwrap());
    fs::remove_dir_all(place.data()).unwrap();
    for _ in 0..40 {
        assert_eq!(client.getattr(&gone), Err(STALE));
    }
    assert_eq!(client.getattr(&there), Ok(()));
    assert!(server.stop().success());
    let log = fs::read_to_string(place.path("log")).unwrap();
    let told = log.matches(" is gone: bring it back").count();
    assert!((1..40).contains(&told), "{log}");
}

#[test]
fn two_servers_do_not_share_a_state_folder() {
    let place = Place::new();
    let first = Running::start(&mut place.serve_data());
    let holder = format!("(process {})", first.process());
    refused(&mut place.serve_data(), &holder, "--state-dir");
}

#[test]
fn a_key_that_others_may_know_is_refused() {
    let place = Place::new();
    Running::start(&mut place.serve_data()).stop();
    let key = place.state().join("handle.key");
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o7777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    refused(&mut place.serve_data(), "others may know the key", "chmod 600");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&key, "short").unwrap();
    refused(&mut place.serve_data(), "has 5 bytes and should have 16", "restore it");
}

#[test]
fn a_server_with_connected_clients_ends_with_success_on_sigterm() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let server = Running::start(&mut place.serve_data());
        let mut client = Raw::connect(server.port, NOBODY);
        client.mount(&place.data()).unwrap();
        server.signal(signal);
        assert!(server.stop().success());
    }
}

/// An exports file that offers these folders to this machine.
fn exports(folders: &[&Path]) -> String {
    let line = |folder: &&Path| format!("{} 127.0.0.1(rw,insecure)\n", folder.display());
    folders.iter().map(line).collect()
}

#[test]
fn a_reload_applies_what_is_good_and_refuses_what_is_bad() {
    let place = Place::new();
    let (data, other) = (place.data(), place.path("other"));
    fs::create_dir(&other).unwrap();
    let file = place.write("my.exports", &exports(&[&data]));
    let (log, errors) = (place.path("log"), fs::File::create(place.path("log")).unwrap());
    let server = Running::start_with_log(place.serve(&["--exports"]).arg(&file), errors);
    let mut client = Raw::connect(server.port, NOBODY);
    let handle = client.mount(&data).unwrap();
    assert!(client.mount(&other).is_err());
    let mounts = |path: &Path| Raw::connect(server.port, NOBODY).mount(path).is_ok();

    fs::write(&file, exports(&[&data, &other])).unwrap();
    server.signal(Signal::HUP);
    wait_until("the second export", || mounts(&other));
    assert_eq!(client.getattr(&handle), Ok(()), "the connection and its handles stay good");

    fs::write(&file, format!("{}broken(\n", exports(&[&data]))).unwrap();
    server.signal(Signal::HUP);
    let is_refused =
        || fs::read_to_string(&log).is_ok_and(|log| log.contains("configuration refused"));
    wait_until("the refusal of the bad configuration", is_refused);
    assert!(mounts(&other), "a bad configuration changes nothing");

    fs::write(&file, exports(&[&other])).unwrap();
    server.signal(Signal::HUP);
    wait_until("the first export is gone", || !mounts(&data));
    assert_ne!(client.getattr(&handle), Ok(()));
    assert!(server.stop().success());
}
