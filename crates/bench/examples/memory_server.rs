//! The server over the memory backend, for `comity bench run ... nfs://127.0.0.1:PORT/memory`: what
//! is left of a figure when no disk and no file system of the kernel are in it.
//!
//! `cargo run --release -p comity-bench --example memory_server -- PORT` serves until it is killed.
#![allow(clippy::print_stdout, reason = "it says where it listens")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use comity_backend::{Memory, MemoryOptions};
use comity_export::{ExportRequest, Exports, HandleKey, Source, Sources, Visitor, load};
use comity_nfs3::{Mount, Nfs3};
use comity_rpc::{Dispatcher, Line};
use comity_server::{Server, Service, Settings};
use comity_vfs::{Fs, Mode};

const EXPORTS: &str = "/memory 127.0.0.1(rw,insecure,no_root_squash)\n";

/// NFSv3 and MOUNT.
struct Programs(Dispatcher<Visitor>);

impl Service for Programs {
    type Visitor = Visitor;

    fn visitor(&self, peer: SocketAddr, line: &Arc<Line>) -> Visitor {
        Visitor::on(peer, line)
    }

    fn dispatcher(&self) -> &Dispatcher<Visitor> {
        &self.0
    }
}

fn main() -> Result<()> {
    let port = std::env::args().nth(1).context("give a port")?.parse().context("PORT")?;
    let exports = Arc::new(exports()?);
    let verifier = u64::from(std::process::id()).to_be_bytes();
    let nfs = Arc::new(Nfs3::new(Arc::clone(&exports), verifier));
    let programs = Programs(Dispatcher::new(vec![nfs, Arc::new(Mount::new(exports))]));
    let listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    let server = Server::start(programs, Settings { listen, ..Settings::default() })?;
    println!("{:?}", server.addresses());
    loop {
        std::thread::park();
    }
}

fn exports() -> Result<Exports> {
    let root_mode = Mode::new(0o777);
    let memory = Memory::new(MemoryOptions { root_mode, ..MemoryOptions::default() })?;
    let memory = Arc::new(memory);
    let source = Source::Text { name: "exports".into(), text: EXPORTS.into() };
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&memory) as Arc<dyn Fs>);
    match load(&Sources::new(vec![source]), &open, HandleKey::new([7; 16]), None) {
        Ok((plan, _)) => Ok(Exports::new(plan)),
        Err(findings) => bail!("{findings:?}"),
    }
}
