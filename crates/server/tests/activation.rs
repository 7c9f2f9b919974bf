//! A listening socket from a service manager is used; descriptors that are none are ignored.
#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use comity_server::inherited_listeners;

/// Runs the next test in a process of its own, started as by a service manager.
#[test]
fn the_server_accepts_on_a_socket_from_the_service_manager() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let script = "exec 3<&0 4</dev/null; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$0\" --exact the_child";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut greeting = String::new();
    TcpStream::connect(address).unwrap().read_to_string(&mut greeting).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(greeting, "hello");
}

#[test]
fn the_child() {
    let mut listeners = inherited_listeners();
    if std::env::var_os("LISTEN_FDS").is_none() {
        return assert!(listeners.is_empty());
    }
    assert_eq!(listeners.len(), 1, "/dev/null is no listening socket");
    let (mut stream, _) = listeners.remove(0).accept().unwrap();
    std::io::Write::write_all(&mut stream, b"hello").unwrap();
}
