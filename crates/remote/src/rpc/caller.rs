use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use comity_rpc::{AuthSys, CallHeader, Flavor, OpaqueAuth};
use comity_xdr::{Counted, Decode, Decoder, Encode, Opaque, encoded};

use super::dial::dial;
use super::message::set_xid;
use super::receive::{receive, told};
use crate::limits::SILENCE_SECONDS_MAX;

/// The user and group of calls when the process runs as root.
pub const CALLER: u32 = 1000;

/// A byte stream to a server and back, such as a socket or TLS over one.
pub trait Duplex: Read + Write + Debug + Send {}

impl<T: Read + Write + Debug + Send> Duplex for T {}

/// A connection on which one call is made at a time.
#[derive(Debug)]
pub struct Caller {
    stream: Box<dyn Duplex>,
    credential: Vec<u8>,
    xid: u32,
}

/// Words of a successful reply after its xid: REPLY, MSG_ACCEPTED, verifier, SUCCESS.
const REPLY_HEADER: [u32; 5] = [1, 0, 0, 0, 0];
/// Bytes of a successful reply before its results.
pub const RESULTS_AT: usize = 24;

impl Caller {
    /// Connects; calls are made as user and group [`CALLER`].
    ///
    /// # Errors
    /// No server listens there.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let (user, group) = caller_ids();
        Self::connect_as(address, user, group)
    }

    /// Connects; calls are made as this user and group. As root it connects from a reserved port,
    /// which `secure` exports require.
    ///
    /// # Errors
    /// No server listens there.
    pub fn connect_as(address: SocketAddr, user: u32, group: u32) -> Result<Self> {
        let stream = dial(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(SILENCE_SECONDS_MAX.into())))?;
        Ok(Self::over(stream, (user, group)))
    }

    /// Makes calls over a connected stream, as this user and group.
    pub fn over(stream: impl Duplex + 'static, (user, group): (u32, u32)) -> Self {
        Self { stream: Box::new(stream), credential: credential(user, group), xid: 0 }
    }

    /// Calls a procedure of any program (number, version, procedure); returns the record of the
    /// reply, whose results begin at byte 24.
    ///
    /// # Errors
    /// The server sent no reply, or did not accept the call.
    pub fn program(
        &mut self,
        program: (u32, u32, u32),
        arguments: &impl Encode,
    ) -> Result<Vec<u8>> {
        self.call(&self.header(program), &encoded(arguments))
    }

    /// Sends a record in pieces, with its mark, and returns the record of the reply, without its
    /// mark.
    ///
    /// # Errors
    /// The server sent no reply, or did not accept the call.
    pub fn exchange(&mut self, parts: &[&[u8]]) -> Result<Vec<u8>> {
        parts.iter().try_for_each(|part| self.stream.write_all(part)).map_err(told)?;
        self.stream.flush().map_err(told)?;
        let reply = receive(&mut self.stream)?;
        accepted(&reply)?;
        Ok(reply)
    }

    pub(crate) fn call(&mut self, header: &[u8], arguments: &[u8]) -> Result<Vec<u8>> {
        self.xid = self.xid.wrapping_add(1);
        let mut call = record(header, arguments, 0);
        set_xid(&mut call, self.xid);
        let reply = self.exchange(&[&call])?;
        ensure!(reply.starts_with(&self.xid.to_be_bytes()), "a reply to another call");
        Ok(reply)
    }

    pub(crate) fn header(&self, program: (u32, u32, u32)) -> Vec<u8> {
        header(program, &self.credential)
    }
}

/// Decodes the results of a reply that was accepted.
///
/// # Errors
/// They are malformed.
pub fn results<'a, T: Decode<'a>>(reply: &'a [u8]) -> Result<T> {
    Ok(Decoder::whole(reply.get(RESULTS_AT..).unwrap_or_default())?)
}

/// Makes an I/O error of a call that failed, or whose reply is malformed.
#[must_use]
pub fn call_error(error: &anyhow::Error) -> std::io::Error {
    std::io::Error::other(format!("{error:#}"))
}

fn accepted(reply: &[u8]) -> Result<()> {
    let words: Vec<u32> = (4..RESULTS_AT)
        .step_by(4)
        .filter_map(|at| reply.get(at..at + 4)?.first_chunk())
        .map(|word| u32::from_be_bytes(*word))
        .collect();
    ensure!(words == REPLY_HEADER, "not accepted: {words:?}");
    Ok(())
}

/// The header of calls to a procedure (program, version, procedure) as a user and group, with xid
/// 0.
pub fn call_header(program: (u32, u32, u32), (user, group): (u32, u32)) -> Vec<u8> {
    header(program, &credential(user, group))
}

/// Encodes a call with this header as a record with its mark, followed by `payload` bytes, which
/// the mark counts.
pub fn record_before(header: &[u8], arguments: &impl Encode, payload: usize) -> Vec<u8> {
    record(header, &encoded(arguments), payload)
}

fn header((program, version, procedure): (u32, u32, u32), credential: &[u8]) -> Vec<u8> {
    let credential = OpaqueAuth { flavor: Flavor::SYS, body: Opaque(credential) };
    let verifier = OpaqueAuth::NONE;
    encoded(&CallHeader { xid: 0, program, version, procedure, credential, verifier })
}

/// The user and group of calls: [`CALLER`] for root, otherwise those of the process.
pub fn caller_ids() -> (u32, u32) {
    if rustix::process::geteuid().is_root() {
        return (CALLER, CALLER);
    }
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

fn credential(user: u32, group: u32) -> Vec<u8> {
    encoded(&AuthSys {
        stamp: 0,
        machine_name: Opaque(b"comity-bench"),
        uid: user,
        gid: group,
        gids: Counted(vec![group]),
    })
}

pub(crate) fn record(header: &[u8], arguments: &[u8], payload: usize) -> Vec<u8> {
    let mark = 1 << 31 | (header.len() + arguments.len() + payload) as u32;
    [&mark.to_be_bytes(), header, arguments].concat()
}
