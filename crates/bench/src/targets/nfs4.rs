use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::net::SocketAddr;

use anyhow::Result;
use comity_proto::nfs4::{
    Commit4args, Component4, Create4args, Create4resok, Createhow4, Createtype4, Fattr4, Openflag4,
    Read4args, Read4resok, Setattr4args, StableHow4, Stateid4, Verifier4, Write4args, Write4resok,
    operation as op, share,
};
use comity_remote::nfs4::{
    Backchannel, Compound, Locker, OBJECT, Opened, Opening, Session, list, made, metadata, owned,
};
use comity_remote::rpc::Caller;
use comity_xdr::Opaque;
use rustix::io::Errno;
use slab::Slab;

use crate::suite::{Access, Entry, FileId, Files, LockKind, Metadata, Range, Wait};

mod lock;

/// Most cached handles of directories.
const DIRECTORIES_MAX: usize = 10_000;

/// Files over NFS version 4.1, one call at a time: a client of its own with one slot. Only handles
/// of directories are cached; the client takes no delegations.
pub(super) struct Nfs4Files {
    session: Session<Caller>,
    root: Vec<u8>,
    directories: HashMap<String, Vec<u8>>,
    open: Slab<Open>,
    /// Files opened so far; each has a lock-owner of its own.
    opens: u64,
}

struct Open {
    file: Opened,
    path: String,
    locker: Locker,
    /// The verifier under which data was written that is not committed yet.
    uncommitted: Option<Verifier4>,
}

impl Nfs4Files {
    /// Connects and registers a client, as a user.
    pub(super) fn connect(address: SocketAddr, root: &[u8], who: (u32, u32)) -> Result<Self> {
        Ok(Self::of(Session::connect(address, who)?, root))
    }

    /// Uses an existing connection.
    pub(super) fn over(caller: Caller, root: &[u8], who: (u32, u32)) -> Result<Self> {
        Ok(Self::of(Session::begin(caller, who, Backchannel::No)?, root))
    }

    fn of(session: Session<Caller>, root: &[u8]) -> Self {
        let (directories, open) = (HashMap::new(), Slab::new());
        Self { session, root: root.to_vec(), directories, open, opens: 0 }
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
        let (dir, name) = self.place(path)?;
        let handle = self.session.walk(&dir, name)?;
        if self.directories.len() >= DIRECTORIES_MAX {
            self.directories.clear();
        }
        self.directories.insert(path.to_owned(), handle.clone());
        Ok(handle)
    }

    fn open_with(&mut self, path: &str, how: Openflag4<'_>, access: u32) -> IoResult<FileId> {
        let (dir, name) = self.place(path)?;
        // An owner that opened a file twice would have it open once.
        let already = self.open.iter().filter(|(_, open)| open.path == path).count();
        let owner = (already as u64).to_be_bytes();
        let access = access | share::WANT_NO_DELEG;
        let file = self.session.open(&Opening { dir: &dir, name, owner: &owner, how, access })?;
        self.opens += 1;
        let (path, locker) = (path.to_owned(), Locker::new(self.opens.to_be_bytes()));
        Ok(FileId(self.open.insert(Open { file, path, locker, uncommitted: None }) as u64))
    }

    fn opened(&mut self, file: FileId) -> IoResult<&mut Open> {
        self.open.get_mut(file.0 as usize).ok_or_else(|| Errno::BADF.into())
    }

    fn commit(&mut self, file: FileId) -> IoResult<()> {
        let open = self.opened(file)?;
        let Some(verifier) = open.uncommitted else { return Ok(()) };
        let compound =
            Compound::on(&open.file.handle).with(op::COMMIT, &Commit4args { offset: 0, count: 0 });
        let reply = self.session.perform(&compound)?;
        if reply.on_object()?.next::<Verifier4>(op::COMMIT)? != verifier {
            return Err(super::nfs::restarted());
        }
        self.opened(file)?.uncommitted = None;
        Ok(())
    }

    fn create_object(&mut self, path: &str, objtype: Createtype4<'_>, mode: u32) -> IoResult<()> {
        let (dir, name) = self.place(path)?;
        let values = made(mode, None);
        let objname = component(name);
        let arguments = Create4args { objtype, objname, createattrs: values.fattr() };
        let reply = self.session.perform(&Compound::on(&dir).with(op::CREATE, &arguments))?;
        reply.on_object()?.next::<Create4resok>(op::CREATE).map(drop)
    }

    /// Returns the attributes of the object that a COMPOUND ends at, by a GETATTR added to it.
    fn found(&mut self, compound: Compound) -> IoResult<Metadata> {
        let reply = self.session.perform(&compound.with(op::GETATTR, &OBJECT))?;
        let mut results = reply.on_object()?;
        if results.is_of(op::LOOKUP) {
            results.next::<()>(op::LOOKUP)?;
        }
        let found: Fattr4<'_> = results.next(op::GETATTR)?;
        metadata(&found).map_err(|error| Error::new(ErrorKind::InvalidData, error))
    }
}

impl Files for Nfs4Files {
    fn make_directory(&mut self, path: &str) -> IoResult<()> {
        self.create_object(path, Createtype4::Dir, 0o755)
    }

    fn remove_directory(&mut self, path: &str) -> IoResult<()> {
        self.directories.remove(path);
        self.remove(path)
    }

    fn create(&mut self, path: &str) -> IoResult<FileId> {
        let values = made(0o644, Some(0));
        let how = Openflag4::Create(Createhow4::Unchecked(values.fattr()));
        self.open_with(path, how, share::BOTH)
    }

    fn open(&mut self, path: &str, access: Access) -> IoResult<FileId> {
        let access = if access == Access::Read { share::READ } else { share::BOTH };
        self.open_with(path, Openflag4::NoCreate, access)
    }

    fn close(&mut self, file: FileId) -> IoResult<()> {
        // Commits the written data and releases the locks, as a kernel client does.
        self.commit(file)?;
        self.unlock_all(file)?;
        let open = self.open.try_remove(file.0 as usize).ok_or(Errno::BADF)?;
        self.session.perform(&open.file.closing()).map(drop)
    }

    fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> IoResult<usize> {
        let Opened { handle, stateid, .. } = self.opened(file)?.file.clone();
        let mut done = 0;
        while done < buffer.len() {
            let count = (buffer.len() - done).min(self.session.data_bytes()) as u32;
            let arguments = Read4args { stateid, offset: offset + done as u64, count };
            let reply = self.session.perform(&Compound::on(&handle).with(op::READ, &arguments))?;
            let read: Read4resok<'_> = reply.on_object()?.next(op::READ)?;
            let data = read.data.0;
            let place = buffer.get_mut(done..done + data.len());
            place.ok_or_else(super::nfs::malformed)?.copy_from_slice(data);
            done += data.len();
            if read.eof || data.is_empty() {
                break;
            }
        }
        Ok(done)
    }

    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> IoResult<usize> {
        let Opened { handle, stateid, .. } = self.opened(file)?.file.clone();
        let piece = data.get(..data.len().min(self.session.data_bytes())).unwrap_or(data);
        let stable = StableHow4::Unstable;
        let arguments = Write4args { stateid, offset, stable, data: Opaque(piece) };
        let reply = self.session.perform(&Compound::on(&handle).with(op::WRITE, &arguments))?;
        let written: Write4resok = reply.on_object()?.next(op::WRITE)?;
        let open = self.opened(file)?;
        if open.uncommitted.is_some_and(|verifier| verifier != written.writeverf) {
            return Err(super::nfs::restarted());
        }
        if written.committed == StableHow4::Unstable {
            open.uncommitted = Some(written.writeverf);
        }
        Ok(written.count as usize)
    }

    fn sync(&mut self, file: FileId) -> IoResult<()> {
        self.commit(file)
    }

    fn attributes(&mut self, file: FileId) -> IoResult<Metadata> {
        let compound = Compound::on(&self.opened(file)?.file.handle);
        self.found(compound)
    }

    fn lookup(&mut self, path: &str) -> IoResult<Metadata> {
        let (dir, name) = self.place(path)?;
        self.found(Compound::on(&dir).with(op::LOOKUP, &component(name)))
    }

    fn list(&mut self, path: &str, attributes: bool) -> IoResult<Vec<Entry>> {
        let dir = self.directory(path)?;
        list(&mut self.session, &dir, attributes)
    }

    fn make_link(&mut self, path: &str, to: &str) -> IoResult<()> {
        self.create_object(path, Createtype4::Lnk(Opaque(to.as_bytes())), 0o777)
    }

    fn read_link(&mut self, path: &str) -> IoResult<String> {
        let (dir, name) = self.place(path)?;
        let compound = Compound::on(&dir).with(op::LOOKUP, &component(name)).then(op::READLINK);
        let reply = self.session.perform(&compound)?;
        let mut results = reply.on_object()?;
        results.next::<()>(op::LOOKUP)?;
        let link: Component4<'_> = results.next(op::READLINK)?;
        Ok(String::from_utf8_lossy(link.0).into_owned())
    }

    fn remove(&mut self, path: &str) -> IoResult<()> {
        let (dir, name) = self.place(path)?;
        self.session.perform(&Compound::on(&dir).with(op::REMOVE, &component(name))).map(drop)
    }

    fn set_owner(&mut self, path: &str, user: u32, group: u32) -> IoResult<()> {
        let (dir, name) = self.place(path)?;
        let values = owned(user, group);
        let (stateid, obj_attributes) = (Stateid4::ANONYMOUS, values.fattr());
        let compound = Compound::on(&dir)
            .with(op::LOOKUP, &component(name))
            .with(op::SETATTR, &Setattr4args { stateid, obj_attributes });
        self.session.perform(&compound).map(drop)
    }

    fn lock(&mut self, file: FileId, kind: LockKind, range: Range, wait: Wait) -> IoResult<()> {
        self.lock_range(file, kind, range, wait)
    }
}

const fn component(name: &str) -> Component4<'_> {
    Opaque(name.as_bytes())
}
