//! Pages over HTTP: the time for which a connection is kept.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use comity_server::{ConnectionBounds, HttpService, listen};

const IDLE: Duration = Duration::from_secs(1);

fn service() -> HttpService {
    let listener = listen("127.0.0.1:0".parse().unwrap(), "choose another").unwrap();
    let bounds = ConnectionBounds { connections: 4, seconds: 60, idle_seconds: IDLE.as_secs() };
    let router = Router::new().route("/", get(|| async { "page" }));
    HttpService::start("web", listener, bounds, router).unwrap()
}

fn connect(service: &HttpService) -> TcpStream {
    let stream = TcpStream::connect(service.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Asks for the page; panics unless the connection is still served.
fn ask(stream: &mut TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    // The rest of the answer arrives before the next request, or is read now.
    let mut rest = [0; 512];
    assert!(stream.read(&mut rest).unwrap() > 0);
}

#[test]
fn an_idle_connection_is_closed_and_a_used_one_stays() {
    let service = service();
    let (mut idle, mut used) = (connect(&service), connect(&service));
    let begun = Instant::now();
    while begun.elapsed() < 3 * IDLE {
        ask(&mut used);
        std::thread::sleep(IDLE / 5);
    }
    idle.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert!(matches!(idle.read(&mut [0]), Ok(0)), "the idle connection is still open");
    service.shutdown();
}
