//! NFS calls built by hand, which the client library cannot make.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use super::PATIENCE;
use super::line::Line;

pub const MOUNT: u32 = 100_005;
pub const NFS: u32 = 100_003;

/// The program that locks files for NFSv3, of which version 4 is called.
pub const NLM: u32 = 100_021;

/// A connection with a client that makes one call at a time.
pub struct Raw {
    stream: Line,
    xid: u32,
    uid: u32,
}

/// A connection to a server on this machine, from one of its addresses.
pub fn stream_from(source: [u8; 4], port: u16) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    TcpStream::from(socket)
}

impl Raw {
    pub fn connect(port: u16, uid: u32) -> Self {
        Self::connect_from([127, 0, 0, 1], port, uid)
    }

    /// A client at another address of the loopback network.
    pub fn connect_from(source: [u8; 4], port: u16, uid: u32) -> Self {
        Self::on(stream_from(source, port), uid)
    }

    /// A client on an open connection.
    pub fn on(stream: impl Into<Line>, uid: u32) -> Self {
        let stream = stream.into();
        stream.set_read_timeout(PATIENCE);
        Self { stream, xid: 7, uid }
    }

    /// READ of the beginning of a file; returns the data, or the status of the refusal.
    pub fn read(&mut self, handle: &[u8]) -> Result<Vec<u8>, u32> {
        let mut arguments = Vec::new();
        opaque(&mut arguments, handle);
        arguments.extend([0; 8]);
        number(&mut arguments, 1 << 20);
        let results = self.call(NFS, 6, &arguments);
        status(&results)?;
        // The status is followed by attributes, the count and the end-of-file flag.
        let attributes = if results[4..8] == [0, 0, 0, 1] { 84 } else { 0 };
        Ok(taken(&results[8 + attributes + 8..]).to_vec())
    }

    /// MNT of a path; returns the handle, or the status of the refusal.
    pub fn mount(&mut self, path: &Path) -> Result<Vec<u8>, u32> {
        let mut arguments = Vec::new();
        opaque(&mut arguments, path.as_os_str().as_bytes());
        let results = self.call(MOUNT, 1, &arguments);
        status(&results).map(|()| taken(&results[4..]).to_vec())
    }

    /// EXPORT or DUMP; returns pairs of a path and its clients, or of a host and a path.
    pub fn pairs(&mut self, procedure: u32) -> Vec<(String, String)> {
        let results = self.call(MOUNT, procedure, &[]);
        let (mut rest, mut pairs) = (&results[..], Vec::new());
        while next(&mut rest) == 1 {
            let first = text(&mut rest);
            let is_exports = procedure == 5;
            // Either a list of groups or one name.
            let second = match is_exports {
                true => std::iter::from_fn(|| (next(&mut rest) == 1).then(|| text(&mut rest)))
                    .collect::<Vec<_>>()
                    .join(" "),
                false => text(&mut rest),
            };
            pairs.push((first, second));
        }
        assert!(rest.is_empty());
        pairs
    }

    /// LOOKUP; returns the handle, or the status of the refusal.
    pub fn lookup(&mut self, dir: &[u8], name: &[u8]) -> Result<Vec<u8>, u32> {
        let mut arguments = Vec::new();
        opaque(&mut arguments, dir);
        opaque(&mut arguments, name);
        let results = self.call(NFS, 3, &arguments);
        status(&results).map(|()| taken(&results[4..]).to_vec())
    }

    /// READDIR of a whole small directory; returns whether it was allowed.
    pub fn readdir(&mut self, dir: &[u8]) -> Result<(), u32> {
        let mut arguments = Vec::new();
        opaque(&mut arguments, dir);
        arguments.extend([0; 16]);
        number(&mut arguments, 8192);
        status(&self.call(NFS, 16, &arguments))
    }

    /// CREATE in exclusive mode; returns the handle, or the status of the refusal.
    pub fn create(&mut self, dir: &[u8], name: &str, verifier: [u8; 8]) -> Result<Vec<u8>, u32> {
        const EXCLUSIVE: u32 = 2;
        let mut arguments = Vec::new();
        opaque(&mut arguments, dir);
        opaque(&mut arguments, name.as_bytes());
        number(&mut arguments, EXCLUSIVE);
        arguments.extend(verifier);
        let results = self.call(NFS, 8, &arguments);
        status(&results)?;
        assert_eq!(results[4..8], [0, 0, 0, 1], "no handle follows");
        Ok(taken(&results[8..]).to_vec())
    }

    /// GETATTR; returns whether the handle is valid.
    pub fn getattr(&mut self, handle: &[u8]) -> Result<(), u32> {
        let mut arguments = Vec::new();
        opaque(&mut arguments, handle);
        status(&self.call(NFS, 1, &arguments))
    }

    /// SETATTR of the mode or of the size.
    pub fn setattr(
        &mut self,
        handle: &[u8],
        (mode, size): (Option<u32>, Option<u64>),
    ) -> Result<(), u32> {
        let mut arguments = Vec::new();
        opaque(&mut arguments, handle);
        number(&mut arguments, mode.is_some().into());
        mode.into_iter().for_each(|mode| number(&mut arguments, mode));
        [0, 0].iter().for_each(|unset| number(&mut arguments, *unset));
        number(&mut arguments, size.is_some().into());
        arguments.extend(size.iter().flat_map(|size| size.to_be_bytes()));
        // The times, and the guard.
        [0, 0, 0].iter().for_each(|unset| number(&mut arguments, *unset));
        status(&self.call(NFS, 2, &arguments))
    }

    /// The owner of an object by GETATTR.
    pub fn owner(&mut self, handle: &[u8]) -> u32 {
        let mut arguments = Vec::new();
        opaque(&mut arguments, handle);
        let results = self.call(NFS, 1, &arguments);
        assert_eq!(status(&results), Ok(()));
        u32::from_be_bytes(results[16..20].try_into().unwrap())
    }

    /// COMMIT of a file; returns the write verifier.
    pub fn commit(&mut self, handle: &[u8]) -> [u8; 8] {
        let mut arguments = Vec::new();
        opaque(&mut arguments, handle);
        arguments.extend([0; 12]);
        let results = self.call(NFS, 21, &arguments);
        assert_eq!(status(&results), Ok(()));
        results[results.len() - 8..].try_into().unwrap()
    }

    /// Makes a call; returns its results. Panics if the call is not accepted and done.
    pub fn call(&mut self, program: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        let reply = self.ask(program, procedure, arguments);
        let done = [1, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
        assert_eq!(reply[4..24], done, "reply, accepted, no verifier, success");
        reply[24..].to_vec()
    }

    /// Makes a call that is denied by an AUTH_ERROR; returns the auth_stat.
    pub fn denied(&mut self, program: u32, procedure: u32) -> u32 {
        self.denied_with(program, procedure, &[])
    }

    /// Like [`Self::denied`], with arguments.
    pub fn denied_with(&mut self, program: u32, procedure: u32, arguments: &[u8]) -> u32 {
        let reply = self.ask(program, procedure, arguments);
        assert_eq!(reply[4..16], [1, 1, 1].map(u32::to_be_bytes).concat(), "reply, denied");
        u32::from_be_bytes(reply[16..].try_into().unwrap())
    }

    fn ask(&mut self, program: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
        self.xid += 1;
        let mut call = Vec::new();
        let mut credential = Vec::new();
        number(&mut credential, 0);
        opaque(&mut credential, b"test");
        for field in [self.uid, self.uid, 0] {
            number(&mut credential, field);
        }
        let version = if program == NLM { 4 } else { 3 };
        for field in [self.xid, 0, 2, program, version, procedure, 1] {
            number(&mut call, field);
        }
        opaque(&mut call, &credential);
        call.extend([0; 8]);
        call.extend(arguments);
        let mark = 0x8000_0000 | call.len() as u32;
        self.stream.write_all(&mark.to_be_bytes()).unwrap();
        self.stream.write_all(&call).unwrap();
        let reply = self.reply();
        assert_eq!(reply[..4], self.xid.to_be_bytes());
        reply
    }

    fn reply(&mut self) -> Vec<u8> {
        let mut mark = [0; 4];
        self.stream.read_exact(&mut mark).unwrap();
        let mut reply = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        self.stream.read_exact(&mut reply).unwrap();
        reply
    }
}

fn status(results: &[u8]) -> Result<(), u32> {
    match u32::from_be_bytes(results[..4].try_into().unwrap()) {
        0 => Ok(()),
        status => Err(status),
    }
}

fn taken(opaque: &[u8]) -> &[u8] {
    let length = u32::from_be_bytes(opaque[..4].try_into().unwrap()) as usize;
    &opaque[4..4 + length]
}

fn next(rest: &mut &[u8]) -> u32 {
    let (word, behind) = rest.split_at(4);
    *rest = behind;
    u32::from_be_bytes(word.try_into().unwrap())
}

fn text(rest: &mut &[u8]) -> String {
    let text = taken(rest).to_vec();
    *rest = &rest[4 + text.len().next_multiple_of(4)..];
    String::from_utf8(text).unwrap()
}

pub fn number(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(number.to_be_bytes());
}

pub fn opaque(bytes: &mut Vec<u8>, data: &[u8]) {
    number(bytes, data.len() as u32);
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
