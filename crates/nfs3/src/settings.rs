use comity_proto::nfs3::{Sattr3, SetTime3};
use comity_vfs::{Gid, Mode, Result, SetAttr, SetTime, Status, Uid, Wire};

use crate::time::time;

/// Reads attributes to set (`sattr3`). Mode bits above 0o7777 are the file's type in some
/// clients and are dropped.
///
/// # Errors
/// [`Status::Inval`] for the id -1, which means "no change", and for a time with too many
/// nanoseconds.
pub(crate) fn set_attr(wanted: &Sattr3) -> Result<SetAttr<Wire>> {
    Ok(SetAttr {
        mode: wanted.mode.map(Mode::new),
        uid: wanted.uid.map(id).transpose()?.map(Uid::new),
        gid: wanted.gid.map(id).transpose()?.map(Gid::new),
        size: wanted.size,
        atime: set_time(wanted.atime)?,
        mtime: set_time(wanted.mtime)?,
    })
}

/// A file system leaves an owner unchanged if it is set to -1, so no client may use that id.
const fn id(number: u32) -> Result<u32> {
    if number == u32::MAX { Err(Status::Inval) } else { Ok(number) }
}

fn set_time(wanted: SetTime3) -> Result<Option<SetTime>> {
    Ok(match wanted {
        SetTime3::DontChange => None,
        SetTime3::SetToServerTime => Some(SetTime::Now),
        SetTime3::SetToClientTime(moment) => Some(SetTime::To(time(moment)?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_proto::nfs3::Nfstime3;
    use comity_vfs::Time;

    #[test]
    fn settings_that_are_not_named_stay() {
        assert!(set_attr(&Sattr3::default()).unwrap().is_empty());
    }

    #[test]
    fn a_mode_loses_the_type_and_a_time_is_taken_as_said() {
        let atime = SetTime3::SetToClientTime(Nfstime3 { seconds: 7, nseconds: 8 });
        let mtime = SetTime3::SetToServerTime;
        let wanted = Sattr3 { mode: Some(0o10_4755), atime, mtime, ..Sattr3::default() };
        let set = set_attr(&wanted).unwrap();
        assert_eq!(set.mode, Some(Mode::new(0o4755)));
        assert_eq!(set.atime, Some(SetTime::To(Time { seconds: 7, nanoseconds: 8 })));
        assert_eq!(set.mtime, Some(SetTime::Now));
    }

    #[test]
    fn minus_one_is_nobody() {
        let wanted = Sattr3 { gid: Some(u32::MAX), ..Sattr3::default() };
        assert_eq!(set_attr(&wanted), Err(Status::Inval));
    }
}
