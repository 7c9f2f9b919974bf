use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Result, bail};
use comity_proto::mount::{self, Dirpath, MountOk, Mountstat3};
use comity_proto::nfs3::{self, Diropargs3, Filename3, Lookup3res, NfsFh3, Result3};
use comity_xdr::{Decoder, Encode, Opaque, encoded};

use crate::rpc::{Caller, RESULTS_AT, record, record_before, results};

impl Caller {
    /// Returns the handle of an export (MNT). The MOUNT program must be served on the same port.
    ///
    /// # Errors
    /// The server refused, or sent no reply.
    pub fn mount(&mut self, path: &Path) -> Result<Vec<u8>> {
        let place = path.display();
        let path: Dirpath<'_> = Opaque(path.as_os_str().as_bytes());
        let program = (mount::PROGRAM, mount::VERSION, mount::procedure::MNT);
        let record = self.program(program, &path)?;
        let mut results = Decoder::new(record.get(RESULTS_AT..).unwrap_or_default());
        match results.value::<Mountstat3>()? {
            Mountstat3::Ok => Ok(results.value::<MountOk<'_>>()?.handle.0.to_vec()),
            status => bail!("{place}: is it exported to this machine? MNT is answered {status:?}"),
        }
    }

    /// Returns the handle of a name in a directory (LOOKUP).
    ///
    /// # Errors
    /// The server refused, or sent no reply.
    pub fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>> {
        let place = Diropargs3 { dir: Opaque(dir), name: Opaque::<{ NAME_MAX }>(name.as_bytes()) };
        let (_, record) = self.nfs(nfs3::procedure::LOOKUP, &place)?;
        match results::<Lookup3res<'_>>(&record)? {
            Result3::Ok(found) => Ok(found.object.0.to_vec()),
            Result3::Fail(status, _) => bail!("LOOKUP {name} is answered {status:?}"),
        }
    }

    /// Returns the handle of a path below a directory.
    ///
    /// # Errors
    /// As [`Caller::lookup`].
    pub fn walk(&mut self, root: &[u8], path: &str) -> Result<Vec<u8>> {
        path.split('/').try_fold(root.to_vec(), |handle, name| self.lookup(&handle, name))
    }

    /// Makes an NFS call: returns the record that was sent, with its record mark, and the record of
    /// the reply, whose results begin at byte 24.
    ///
    /// # Errors
    /// The server sent no reply, or did not accept the call.
    pub fn nfs(&mut self, procedure: u32, arguments: &impl Encode) -> Result<(Vec<u8>, Vec<u8>)> {
        let header = self.header((nfs3::PROGRAM, nfs3::VERSION, procedure));
        let arguments = encoded(arguments);
        let call = record(&header, &arguments, 0);
        Ok((call, self.call(&header, &arguments)?))
    }

    /// Encodes an NFS call that is followed by `payload` bytes, which its record mark counts.
    pub fn call_before(&self, procedure: u32, arguments: &impl Encode, payload: usize) -> Vec<u8> {
        let header = self.header((nfs3::PROGRAM, nfs3::VERSION, procedure));
        record_before(&header, arguments, payload)
    }
}

/// The longest name that is decoded.
const NAME_MAX: u32 = nfs3::NAME_BYTES_MAX;

/// Encodes a handle as an argument.
pub const fn fh(handle: &[u8]) -> NfsFh3<'_> {
    Opaque(handle)
}

/// Encodes a name as an argument.
pub const fn filename(name: &[u8]) -> Filename3<'_> {
    Opaque(name)
}
