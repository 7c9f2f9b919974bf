use comity_vfs::{Cred, Data, Fs, Handle, Read, ReadInto, Result, Seek, Status};

use crate::limits::OWN_DATA_BYTES;

/// Returns whether a file system has bytes of a file other than zeros. A backup of a file without
/// data may have written zeros.
pub(crate) fn has_own_data(fs: &dyn Fs, file: &Handle) -> Result<bool> {
    let (mut bytes, mut offset) = (Vec::new(), 0);
    loop {
        offset = match fs.seek(&Cred::root(), file, offset, Seek::Data) {
            Ok(data) => data,
            Err(Status::NxIo | Status::NoData) => return Ok(false),
            Err(Status::NotSupp) => offset,
            Err(status) => return Err(status),
        };
        bytes.clear();
        let mut into = ReadInto { opened: true, ..ReadInto::new(&mut bytes) };
        let Read { data, eof, .. } =
            fs.read(&Cred::root(), file, offset, OWN_DATA_BYTES, &mut into)?;
        let Data::Appended(count) = data else { return Err(Status::ServerFault) };
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        if eof || count == 0 {
            return Ok(false);
        }
        offset += u64::from(count);
    }
}
