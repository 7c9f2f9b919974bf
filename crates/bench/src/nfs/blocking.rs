use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use comity_proto::mount::{self, Dirpath, MountOk, Mountstat3};
use comity_proto::nfs3::{self, Diropargs3, Filename3, Lookup3res, NfsFh3, Result3};
use comity_rpc::{AuthSys, CallHeader, Flavor, OpaqueAuth};
use comity_xdr::{Counted, Decode, Decoder, Encode, Encoder, Opaque};

use super::dial::dial;
use super::receive::{receive, told};
use crate::call_templates::XID;
use crate::fixture_tree::CALLER;
use crate::limits::SILENCE_SECONDS_MAX;

/// One connection on which one call is made at a time, for finding out what a load needs.
#[derive(Debug)]
pub struct Caller {
    stream: TcpStream,
    credential: Vec<u8>,
    xid: u32,
}

/// Bytes of a successful reply before its results: xid, REPLY, MSG_ACCEPTED, verifier, SUCCESS.
const REPLY_HEADER: [u32; 5] = [1, 0, 0, 0, 0];
pub(crate) const RESULTS_AT: usize = 24;

impl Caller {
    /// Connects; calls are made as user and group [`CALLER`].
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let (user, group) = caller_ids();
        Self::connect_as(address, user, group)
    }

    /// Connects; calls are made as this user and group. Root connects from a reserved port, which
    /// exports that are `secure` ask for.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect_as(address: SocketAddr, user: u32, group: u32) -> Result<Self> {
        let stream = dial(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(SILENCE_SECONDS_MAX.into())))?;
        Ok(Self { stream, credential: credential(user, group), xid: 0 })
    }

    /// The handle of an export (MNT); the MOUNT program must be served on the same port.
    ///
    /// # Errors
    /// Refused, or no answer.
    pub fn mount(&mut self, path: &Path) -> Result<Vec<u8>> {
        let place = path.display();
        let path: Dirpath<'_> = Opaque(path.as_os_str().as_bytes());
        let program = (mount::PROGRAM, mount::VERSION, mount::procedure::MNT);
        let record = self.program(program, &path)?;
        let mut results = Decoder::new(&record[RESULTS_AT..]);
        match results.value::<Mountstat3>()? {
            Mountstat3::Ok => Ok(results.value::<MountOk<'_>>()?.handle.0.to_vec()),
            status => bail!("{place}: is it exported to this machine? MNT is answered {status:?}"),
        }
    }

    /// The handle of a name in a directory (LOOKUP).
    ///
    /// # Errors
    /// It is not there, or no answer.
    pub fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>> {
        let place = Diropargs3 { dir: Opaque(dir), name: Opaque::<{ NAME_MAX }>(name.as_bytes()) };
        let (_, record) = self.nfs(nfs3::procedure::LOOKUP, &place)?;
        match Decoder::whole::<Lookup3res<'_>>(&record[RESULTS_AT..])? {
            Result3::Ok(found) => Ok(found.object.0.to_vec()),
            Result3::Fail(status, _) => bail!("LOOKUP {name} is answered {status:?}"),
        }
    }

    /// The handle of a path below a directory.
    ///
    /// # Errors
    /// As [`Caller::lookup`].
    pub fn walk(&mut self, root: &[u8], path: &str) -> Result<Vec<u8>> {
        path.split('/').try_fold(root.to_vec(), |handle, name| self.lookup(&handle, name))
    }

    /// Makes an NFS call: gives the record that was sent, its mark included, and the record of the
    /// reply, whose results begin at byte 24.
    ///
    /// # Errors
    /// Not answered, or not accepted.
    pub fn nfs(&mut self, procedure: u32, arguments: &impl Encode) -> Result<(Vec<u8>, Vec<u8>)> {
        let header = self.header((nfs3::PROGRAM, nfs3::VERSION, procedure));
        let arguments = encoded(arguments);
        let call = record(&header, &arguments, 0);
        Ok((call, self.call(&header, &arguments)?))
    }

    /// Calls a procedure of any program (number, version, procedure); gives the record of the
    /// reply, whose results begin at byte 24.
    ///
    /// # Errors
    /// Not answered, or not accepted.
    pub fn program(
        &mut self,
        program: (u32, u32, u32),
        arguments: &impl Encode,
    ) -> Result<Vec<u8>> {
        self.call(&self.header(program), &encoded(arguments))
    }

    /// The bytes of an NFS call with `payload` bytes to come behind it.
    pub(super) fn call_before(
        &self,
        procedure: u32,
        arguments: &impl Encode,
        payload: usize,
    ) -> Vec<u8> {
        let header = self.header((nfs3::PROGRAM, nfs3::VERSION, procedure));
        record_before(&header, arguments, payload)
    }

    /// Sends a record as it is and gives the reply's.
    pub(crate) fn exchange(&mut self, parts: &[&[u8]]) -> Result<Vec<u8>> {
        parts.iter().try_for_each(|part| self.stream.write_all(part)).map_err(told)?;
        let reply = receive(&mut self.stream)?;
        accepted(&reply)?;
        Ok(reply)
    }

    fn call(&mut self, header: &[u8], arguments: &[u8]) -> Result<Vec<u8>> {
        self.xid = self.xid.wrapping_add(1);
        let mut call = record(header, arguments, 0);
        call[XID].copy_from_slice(&self.xid.to_be_bytes());
        let reply = self.exchange(&[&call])?;
        ensure!(reply[..4] == self.xid.to_be_bytes(), "a reply to another call");
        Ok(reply)
    }

    fn header(&self, program: (u32, u32, u32)) -> Vec<u8> {
        header(program, &self.credential)
    }
}

/// The longest name the vocabulary reads.
pub(super) const NAME_MAX: u32 = nfs3::NAME_BYTES_MAX;

/// A handle as an argument.
pub(crate) const fn fh(handle: &[u8]) -> NfsFh3<'_> {
    Opaque(handle)
}

/// A name as an argument.
pub(crate) const fn filename(name: &[u8]) -> Filename3<'_> {
    Opaque(name)
}

/// Results of a reply that was accepted.
pub(crate) fn results<'a, T: Decode<'a>>(reply: &'a [u8]) -> Result<T> {
    Ok(Decoder::whole(&reply[RESULTS_AT..])?)
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

/// The header of calls to a procedure of a program (number, version, procedure) as a user and
/// group, under xid 0.
pub(crate) fn call_header(program: (u32, u32, u32), (user, group): (u32, u32)) -> Vec<u8> {
    header(program, &credential(user, group))
}

/// A call under this header, as a record with its mark, with `payload` bytes to come behind it.
pub(crate) fn record_before(header: &[u8], arguments: &impl Encode, payload: usize) -> Vec<u8> {
    record(header, &encoded(arguments), payload)
}

fn header((program, version, procedure): (u32, u32, u32), credential: &[u8]) -> Vec<u8> {
    let credential = OpaqueAuth { flavor: Flavor::SYS, body: Opaque(credential) };
    let verifier = OpaqueAuth::NONE;
    encoded(&CallHeader { xid: 0, program, version, procedure, credential, verifier })
}

/// Whose calls a benchmark makes: [`CALLER`]'s, or one's own if one may be nobody else.
pub(crate) fn caller_ids() -> (u32, u32) {
    if rustix::process::geteuid().is_root() {
        return (CALLER, CALLER);
    }
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

impl crate::nfs4::Wire for Caller {
    fn exchange(&mut self, record: &[&[u8]]) -> Result<Vec<u8>> {
        Self::exchange(self, record)
    }
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

fn encoded<T: Encode>(value: &T) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

fn record(header: &[u8], arguments: &[u8], payload: usize) -> Vec<u8> {
    let mark = 1 << 31 | (header.len() + arguments.len() + payload) as u32;
    [&mark.to_be_bytes(), header, arguments].concat()
}
