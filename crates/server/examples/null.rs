//! Measures the cost of the server itself: a program that does nothing, and a client that keeps it
//! busy.
//!
//! `taskset -c 0 null serve 127.0.0.1:999` starts the server. `taskset -c 1 null load 127.0.0.1:999
//! PID 4 8 5 0` loads it by 4 connections with 8 outstanding calls each, for 5 seconds, and prints
//! the processor time of process PID for each call. The last number is the size of a reply in
//! bytes. They come from the file that `serve` is given, by reference. If the server's environment
//! has COPY they are copied, and if it has PLAIN nothing is counted for the metrics.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measuring tool, not the product")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_rpc::{
    Backchannel, Call, CallHeader, Dispatcher, Done, OpaqueAuth, OpenGate, Outcome, Program, Repeat,
};
use comity_server::metrics::Measured;
use comity_server::{Endpoints, Server, Service, Settings};
use comity_xdr::Encoder;

const PROGRAM: u32 = 0x2000_0001;

struct Null(Option<Arc<File>>);

impl Program<()> for Null {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn procedure_name(&self, _: u32, _: u32) -> &'static str {
        "NULL"
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, (): &(), reply: &mut Encoder) -> Outcome {
        let length = call.header.procedure;
        if length > 0
            && let Some(file) = &self.0
        {
            if std::env::var_os("COPY").is_some() {
                read_into(file, length as usize, reply);
            } else {
                reply.file(Arc::clone(file), 0, length);
            }
        }
        Outcome::Done(Done::default())
    }
}

fn read_into(file: &File, length: usize, reply: &mut Encoder) {
    let bytes = reply.bytes_mut();
    let from = bytes.len();
    bytes.resize(from + length, 0);
    rustix::io::pread(file, &mut bytes[from..], 0).unwrap();
}

struct Nothing(Dispatcher<(), OpenGate>);

impl Service for Nothing {
    type Visitor = ();
    type Gate = OpenGate;

    fn visitor(&self, _: Endpoints, _: &Arc<Backchannel>) {}

    fn dispatcher(&self) -> &Dispatcher<(), OpenGate> {
        &self.0
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", address] => serve(address, None),
        ["serve", address, file] => serve(address, Some(Arc::new(File::open(file).unwrap()))),
        ["load", address, process, connections, depth, seconds, bytes] => load(
            address,
            process,
            [connections, depth, seconds, bytes].map(|number| number.parse().unwrap()),
        ),
        _ => {
            println!("null serve ADDRESS [FILE] | load ADDRESS PID CONNECTIONS DEPTH SECONDS BYTES")
        }
    }
}

fn serve(address: &str, file: Option<Arc<File>>) {
    let program: Arc<dyn Program<()>> = match std::env::var_os("PLAIN") {
        Some(_) => Arc::new(Null(file)),
        None => Arc::new(Measured::new(Null(file), "null", |_| "OK", &Arc::default())),
    };
    let service = Nothing(Dispatcher::new(vec![program], OpenGate));
    let settings = Settings { listen: vec![address.parse().unwrap()], ..Settings::default() };
    let server = Server::start(service, settings).unwrap();
    println!("process {} serves {:?}", std::process::id(), server.addresses());
    loop {
        std::thread::park();
    }
}

fn load(address: &str, process: &str, [connections, depth, seconds, bytes]: [usize; 4]) {
    let batch: Vec<u8> = (0..depth).flat_map(|xid| record(xid as u32, bytes as u32)).collect();
    let mut streams: Vec<_> =
        (0..connections).map(|_| TcpStream::connect(address).unwrap()).collect();
    let reply_bytes = 28 + bytes;
    let mut replies = vec![0; depth * reply_bytes];
    streams.iter().for_each(|stream| stream.set_nodelay(true).unwrap());
    let (before, started) = (busy(process), Instant::now());
    let mut calls = 0;
    streams.iter_mut().for_each(|stream| stream.write_all(&batch).unwrap());
    while started.elapsed() < Duration::from_secs(seconds as u64) {
        for stream in &mut streams {
            stream.read_exact(&mut replies).unwrap();
            stream.write_all(&batch).unwrap();
            calls += depth;
        }
    }
    let busy = busy(process) - before;
    let each = busy.as_nanos() as f64 / calls as f64;
    let rate = calls as f64 / started.elapsed().as_secs_f64();
    println!("{calls} calls, {rate:.0} a second, {each:.0} ns of the server each");
}

fn record(xid: u32, procedure: u32) -> Vec<u8> {
    let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    let header = CallHeader { xid, program: PROGRAM, version: 1, procedure, credential, verifier };
    encoder.value(&header);
    encoder.end_record(start);
    encoder.bytes().to_vec()
}

/// Processor time of all threads of a process.
fn busy(process: &str) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let times = threads.flatten().filter_map(|thread| {
        let mut text = String::new();
        File::open(thread.path().join("schedstat")).ok()?.read_to_string(&mut text).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum())
}
