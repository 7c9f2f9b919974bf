//! Metrics count calls by procedure, status and export, and can be read over HTTP.
#![allow(clippy::unwrap_used)]

mod toy;

use std::io::ErrorKind::ConnectionReset;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use comity_rpc::Dispatcher;
use comity_server::HttpService;
use comity_server::metrics::{Measured, Metrics, serve_metrics};
use comity_server::{Server, limits, listen};
use toy::{Client, Toy, ToyService, eventually, record, settings};

const fn status(status: u32) -> &'static str {
    if status == 0 { "OK" } else { "FAILED" }
}

fn page(metrics: &HttpService) -> String {
    let mut stream = TcpStream::connect(metrics.address()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text
}

fn value(text: &str, start: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(start)?.trim().parse().ok())
}

fn free_port() -> TcpListener {
    listen("127.0.0.1:0".parse().unwrap(), "choose another").unwrap()
}

#[test]
fn calls_are_counted_and_timed_on_the_page() {
    let metrics = Arc::<Metrics>::default();
    let toy = Measured::new(Toy(Arc::default()), "toy", status, &metrics);
    let service = ToyService(Dispatcher::new(vec![Arc::new(toy)], Arc::default()), Arc::default());
    let server = Server::start(service, settings()).unwrap();
    let numbers = server.stats_source();
    let source = Arc::clone(&metrics);
    let name = |number| (number == 0xdead_beef).then(|| "/srv/\"two\"".to_owned());
    let render = move || source.render(&numbers(), &name);
    let metrics = serve_metrics(free_port(), render).unwrap();

    let mut client = Client::new(&server);
    let batch: Vec<u8> = (0..5).flat_map(|n| record(n, toy::NULL, &[])).collect();
    client.send(&batch);
    (0..5).for_each(|_| drop(client.reply()));
    client.call(6, toy::SLEEP, &20_u32.to_be_bytes());
    client.call(7, toy::DEFER, &[]);
    client.call(8, 99, &[]);
    client.call(9, toy::EXPORT, &0xdead_beef_u32.to_be_bytes());
    for xid in 10..13 {
        client.call(xid, toy::OF_EXPORT, &0xdead_beef_u32.to_be_bytes());
    }
    drop(client);
    let closed = "comity_connections_ended_total{reason=\"closed\"}";
    eventually("the end is counted", || value(&page(&metrics), closed) == Some(1.0));

    let text = page(&metrics);
    println!("{text}");
    let calls = |procedure: &str, status: &str, export: &str| {
        let start = format!(
            "comity_rpc_calls_total{{program=\"toy\",version=\"1\",procedure=\"{procedure}\",\
             status=\"{status}\",export=\"{export}\"}}"
        );
        value(&text, &start)
    };
    assert_eq!(calls("NULL", "OK", ""), Some(5.0));
    assert_eq!(calls("SLEEP", "OK", ""), Some(1.0));
    assert_eq!(calls("DEFER", "OK", ""), Some(1.0));
    assert_eq!(calls("TOY", "PROC_UNAVAIL", ""), Some(1.0));
    assert_eq!(calls("EXPORT", "FAILED", "/srv/\\\"two\\\""), Some(1.0));
    assert_eq!(calls("OF_EXPORT", "OK", "/srv/\\\"two\\\""), Some(3.0));
    let slept = value(
        &text,
        "comity_rpc_call_duration_seconds_sum{program=\"toy\",version=\"1\",procedure=\"SLEEP\"}",
    );
    assert!(slept.is_some_and(|seconds| (0.02..0.2).contains(&seconds)), "{slept:?}");
    assert_eq!(value(&text, "comity_deferred_calls_total"), Some(1.0));
    assert_eq!(value(&text, "comity_connections"), Some(0.0));
    metrics.shutdown();
    assert!(server.shutdown());
}

#[test]
fn the_page_is_for_a_bounded_number_of_connections() {
    let page_of_nothing = serve_metrics(free_port(), String::new).unwrap();
    let connect = || TcpStream::connect(page_of_nothing.address()).unwrap();
    let mut idle: Vec<_> = (0..limits::METRICS_CONNECTIONS_MAX).map(|_| connect()).collect();
    let mut one_more = connect();
    one_more.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let ended = one_more.read(&mut [0]);
    assert!(matches!(&ended, Ok(0)) || ended.is_err_and(|e| e.kind() == ConnectionReset));
    idle.pop();
    eventually("there is a place again", || {
        let mut stream = connect();
        let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        asked.is_ok() && matches!(stream.read(&mut [0; 4]), Ok(4))
    });
    drop(idle);
    page_of_nothing.shutdown();
}
