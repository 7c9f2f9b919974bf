use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::net::SocketAddr;

use anyhow::Result;
use comity_proto::nfs3::{
    Commit3args, Commit3res, Create3args, Create3res, Createhow3, Diropargs3, Fattr3, Ftype3,
    Getattr3res, Lookup3res, Mkdir3args, Nfsstat3, Read3args, Read3res, Readlink3res, Remove3res,
    Result3, Sattr3, Setattr3args, Setattr3res, StableHow, Symlink3args, Write3args, Write3res,
    Writeverf3, procedure,
};
use comity_remote::nfs3::{fh, filename};
use comity_remote::rpc::{Caller, RESULTS_AT, call_error, results};
use comity_xdr::{Decode, Encode, Opaque};
use rustix::io::Errno;
use slab::Slab;

use crate::suite::{Access, Entry, FileId, FileKind, Files, LockKind, Metadata, Range, Wait};

mod listing;

/// Most bytes in one READ or WRITE.
const DATA_BYTES: usize = 1 << 20;
/// Most cached handles of directories.
const DIRECTORIES_MAX: usize = 10_000;

/// Files over NFS version 3, one call at a time on a connection of its own. Only handles of
/// directories are cached: every operation is at least one call.
pub(super) struct NfsFiles {
    caller: Caller,
    root: Vec<u8>,
    directories: HashMap<String, Vec<u8>>,
    open: Slab<Open>,
}

struct Open {
    handle: Vec<u8>,
    /// The verifier under which data was written that is not committed yet.
    uncommitted: Option<Writeverf3>,
}

/// The files below a handle over NFS version 3, on an existing connection.
#[must_use]
pub fn files_over(caller: Caller, root: &[u8]) -> Box<dyn Files> {
    Box::new(NfsFiles::over(caller, root))
}

impl NfsFiles {
    /// Connects, as a user.
    pub(super) fn connect(address: SocketAddr, root: &[u8], who: (u32, u32)) -> Result<Self> {
        Ok(Self::over(Caller::connect_as(address, who.0, who.1)?, root))
    }

    /// Uses an existing connection.
    pub(super) fn over(caller: Caller, root: &[u8]) -> Self {
        let (directories, open) = (HashMap::new(), Slab::new());
        Self { caller, root: root.to_vec(), directories, open }
    }

    fn call(&mut self, procedure: u32, arguments: &impl Encode) -> IoResult<Vec<u8>> {
        let answered = self.caller.nfs(procedure, arguments).map_err(|error| call_error(&error));
        answered.map(|(_, reply)| reply)
    }

    /// The handle of the directory that a path is in, and the last name.
    fn place<'a>(&mut self, path: &'a str) -> IoResult<(Vec<u8>, &'a str)> {
        match path.rsplit_once('/') {
            Some((directory, name)) => Ok((self.directory(directory)?, name)),
            None => Ok((self.root.clone(), path)),
        }
    }

    fn directory(&mut self, path: &str) -> IoResult<Vec<u8>> {
        if matches!(path, "" | ".") {
            return Ok(self.root.clone());
        }
        if let Some(handle) = self.directories.get(path) {
            return Ok(handle.clone());
        }
        let (handle, _) = self.find(path)?;
        if self.directories.len() >= DIRECTORIES_MAX {
            self.directories.clear();
        }
        self.directories.insert(path.to_owned(), handle.clone());
        Ok(handle)
    }

    fn find(&mut self, path: &str) -> IoResult<(Vec<u8>, Option<Fattr3>)> {
        let (dir, name) = self.place(path)?;
        let place = Diropargs3 { dir: fh(&dir), name: filename(name.as_bytes()) };
        let reply = self.call(procedure::LOOKUP, &place)?;
        let found = success(decode::<Lookup3res<'_>>(&reply)?)?;
        Ok((found.object.0.to_vec(), found.obj_attributes))
    }

    fn getattr(&mut self, handle: &[u8]) -> IoResult<Metadata> {
        let reply = self.call(procedure::GETATTR, &fh(handle))?;
        Ok(metadata(&success(decode::<Getattr3res>(&reply)?)?))
    }

    fn opened(&self, file: FileId) -> IoResult<&Open> {
        self.open.get(file.0 as usize).ok_or_else(|| Errno::BADF.into())
    }

    fn insert(&mut self, handle: Vec<u8>) -> FileId {
        FileId(self.open.insert(Open { handle, uncommitted: None }) as u64)
    }

    fn write_piece(&mut self, file: FileId, offset: u64, data: &[u8]) -> IoResult<usize> {
        let handle = self.opened(file)?.handle.clone();
        let (stable, count) = (StableHow::Unstable, data.len() as u32);
        let arguments = Write3args { file: fh(&handle), offset, count, stable, data: Opaque(data) };
        let reply = self.call(procedure::WRITE, &arguments)?;
        let written = success(decode::<Write3res>(&reply)?)?;
        let open = self.open.get_mut(file.0 as usize).ok_or(Errno::BADF)?;
        if open.uncommitted.is_some_and(|verifier| verifier != written.verf) {
            return Err(restarted());
        }
        if written.committed == StableHow::Unstable {
            open.uncommitted = Some(written.verf);
        }
        Ok(written.count as usize)
    }

    fn commit(&mut self, file: FileId) -> IoResult<()> {
        let open = self.opened(file)?;
        let (handle, Some(verifier)) = (open.handle.clone(), open.uncommitted) else {
            return Ok(());
        };
        let arguments = Commit3args { file: fh(&handle), offset: 0, count: 0 };
        let reply = self.call(procedure::COMMIT, &arguments)?;
        if success(decode::<Commit3res>(&reply)?)?.verf != verifier {
            return Err(restarted());
        }
        if let Some(open) = self.open.get_mut(file.0 as usize) {
            open.uncommitted = None;
        }
        Ok(())
    }

    fn remove_by(&mut self, procedure: u32, path: &str) -> IoResult<()> {
        let (dir, name) = self.place(path)?;
        let place = Diropargs3 { dir: fh(&dir), name: filename(name.as_bytes()) };
        let reply = self.call(procedure, &place)?;
        success(decode::<Remove3res>(&reply)?).map(drop)
    }
}

impl Files for NfsFiles {
    fn make_directory(&mut self, path: &str) -> IoResult<()> {
        let (dir, name) = self.place(path)?;
        let place = Diropargs3 { dir: fh(&dir), name: filename(name.as_bytes()) };
        let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
        let reply = self.call(procedure::MKDIR, &Mkdir3args { place, attributes })?;
        success(decode::<Create3res<'_>>(&reply)?).map(drop)
    }

    fn remove_directory(&mut self, path: &str) -> IoResult<()> {
        self.directories.remove(path);
        self.remove_by(procedure::RMDIR, path)
    }

    fn create(&mut self, path: &str) -> IoResult<FileId> {
        let (dir, name) = self.place(path)?;
        let place = Diropargs3 { dir: fh(&dir), name: filename(name.as_bytes()) };
        let attributes = Sattr3 { mode: Some(0o644), size: Some(0), ..Sattr3::default() };
        let arguments = Create3args { place, how: Createhow3::Unchecked(attributes) };
        let reply = self.call(procedure::CREATE, &arguments)?;
        let created = success(decode::<Create3res<'_>>(&reply)?)?;
        let handle = match created.obj {
            Some(handle) => handle.0.to_vec(),
            None => self.find(path)?.0,
        };
        Ok(self.insert(handle))
    }

    fn open(&mut self, path: &str, _: Access) -> IoResult<FileId> {
        let (handle, _) = self.find(path)?;
        Ok(self.insert(handle))
    }

    fn close(&mut self, file: FileId) -> IoResult<()> {
        // Commits the written data, as a kernel client does, so that others see it and errors are
        // reported.
        self.commit(file)?;
        self.open.try_remove(file.0 as usize).map(drop).ok_or_else(|| Errno::BADF.into())
    }

    fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> IoResult<usize> {
        let handle = self.opened(file)?.handle.clone();
        let mut done = 0;
        while done < buffer.len() {
            let count = (buffer.len() - done).min(DATA_BYTES) as u32;
            let arguments = Read3args { file: fh(&handle), offset: offset + done as u64, count };
            let reply = self.call(procedure::READ, &arguments)?;
            let read = success(decode::<Read3res<'_>>(&reply)?)?;
            let data = read.data.0;
            buffer.get_mut(done..done + data.len()).ok_or_else(malformed)?.copy_from_slice(data);
            done += data.len();
            if read.eof || data.is_empty() {
                break;
            }
        }
        Ok(done)
    }

    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> IoResult<usize> {
        let piece = data.get(..data.len().min(DATA_BYTES)).unwrap_or(data);
        self.write_piece(file, offset, piece)
    }

    fn sync(&mut self, file: FileId) -> IoResult<()> {
        self.commit(file)
    }

    fn attributes(&mut self, file: FileId) -> IoResult<Metadata> {
        let handle = self.opened(file)?.handle.clone();
        self.getattr(&handle)
    }

    fn lookup(&mut self, path: &str) -> IoResult<Metadata> {
        match self.find(path)? {
            (_, Some(attributes)) => Ok(metadata(&attributes)),
            (handle, None) => self.getattr(&handle),
        }
    }

    fn list(&mut self, path: &str, attributes: bool) -> IoResult<Vec<Entry>> {
        let dir = self.directory(path)?;
        if attributes { self.readdirplus(&dir, path) } else { self.readdir(&dir) }
    }

    fn make_link(&mut self, path: &str, to: &str) -> IoResult<()> {
        let (dir, name) = self.place(path)?;
        let place = Diropargs3 { dir: fh(&dir), name: filename(name.as_bytes()) };
        let target = Opaque(to.as_bytes());
        let arguments = Symlink3args { place, attributes: Sattr3::default(), target };
        let reply = self.call(procedure::SYMLINK, &arguments)?;
        success(decode::<Create3res<'_>>(&reply)?).map(drop)
    }

    fn read_link(&mut self, path: &str) -> IoResult<String> {
        // The handle of the last link read is not kept: a client would ask for it too.
        let (handle, _) = self.find(path)?;
        let reply = self.call(procedure::READLINK, &fh(&handle))?;
        let link = success(decode::<Readlink3res<'_>>(&reply)?)?;
        Ok(String::from_utf8_lossy(link.data.0).into_owned())
    }

    fn remove(&mut self, path: &str) -> IoResult<()> {
        self.remove_by(procedure::REMOVE, path)
    }

    fn set_owner(&mut self, path: &str, user: u32, group: u32) -> IoResult<()> {
        let (handle, _) = self.find(path)?;
        let new_attributes = Sattr3 { uid: Some(user), gid: Some(group), ..Sattr3::default() };
        let arguments = Setattr3args { object: fh(&handle), new_attributes, guard: None };
        let reply = self.call(procedure::SETATTR, &arguments)?;
        success(decode::<Setattr3res>(&reply)?).map(drop)
    }

    fn lock(&mut self, _: FileId, _: LockKind, _: Range, _: Wait) -> IoResult<()> {
        Err(Errno::OPNOTSUPP.into())
    }
}

fn decode<'a, T: Decode<'a>>(reply: &'a [u8]) -> IoResult<T> {
    debug_assert!(reply.len() >= RESULTS_AT, "accepted replies are that long");
    results(reply).map_err(|error| call_error(&error))
}

/// The body of a result, or its status as an error number.
fn success<T, F>(result: Result3<T, F>) -> IoResult<T> {
    match result {
        Result3::Ok(body) => Ok(body),
        Result3::Fail(status, _) => Err(failure(status)),
    }
}

/// NFS3ERR numbers up to 70 are those of Unix; where Linux has others, they are translated.
fn failure(status: Nfsstat3) -> Error {
    let errno = match status {
        Nfsstat3::NameTooLong => Errno::NAMETOOLONG,
        Nfsstat3::NotEmpty => Errno::NOTEMPTY,
        Nfsstat3::DQuot => Errno::DQUOT,
        Nfsstat3::Stale | Nfsstat3::BadHandle => Errno::STALE,
        Nfsstat3::Remote => Errno::REMOTE,
        Nfsstat3::NotSupp => Errno::OPNOTSUPP,
        status if (status as u32) < 63 => Errno::from_raw_os_error(status as i32),
        status => return Error::other(format!("the server says {status:?}")),
    };
    errno.into()
}

pub(super) fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "the server sent more data than was asked for")
}

pub(super) fn restarted() -> Error {
    Error::other("the server restarted and lost data that was not committed (write verifier)")
}

fn metadata(attributes: &Fattr3) -> Metadata {
    let kind = match attributes.ftype {
        Ftype3::Reg => FileKind::File,
        Ftype3::Dir => FileKind::Directory,
        Ftype3::Lnk => FileKind::Link,
        _ => FileKind::Other,
    };
    Metadata { kind, size: attributes.size, user: attributes.uid }
}
