use comity_vfs::Status;
use rustix::io::Errno;

/// Returns the status for an error number of a file system call.
pub(crate) fn status(errno: Errno) -> Status {
    of_object(errno).or_else(|| of_space(errno)).unwrap_or_else(|| of_machine(errno))
}

/// Returns the status if the names or objects of the call are wrong.
fn of_object(errno: Errno) -> Option<Status> {
    Some(match errno {
        Errno::PERM => Status::Perm,
        Errno::NOENT => Status::NoEnt,
        Errno::ACCESS => Status::Acces,
        Errno::EXIST => Status::Exist,
        Errno::XDEV => Status::XDev,
        Errno::NOTDIR => Status::NotDir,
        Errno::ISDIR => Status::IsDir,
        Errno::INVAL => Status::Inval,
        Errno::MLINK => Status::MLink,
        Errno::NAMETOOLONG => Status::NameTooLong,
        Errno::NOTEMPTY => Status::NotEmpty,
        Errno::LOOP => Status::SymLink,
        Errno::STALE => Status::Stale,
        // A file system is mounted there, or the file is being executed: the name cannot be
        // changed.
        Errno::TXTBSY | Errno::BUSY => Status::Acces,
        Errno::NODATA => Status::NoXattr,
        _ => return None,
    })
}

/// Returns the status if the medium has no space or is read-only.
fn of_space(errno: Errno) -> Option<Status> {
    Some(match errno {
        Errno::FBIG | Errno::OVERFLOW => Status::FBig,
        Errno::NOSPC => Status::NoSpc,
        Errno::ROFS => Status::RoFs,
        Errno::DQUOT => Status::DQuot,
        Errno::NOTSUP | Errno::NOSYS | Errno::NOTTY => Status::NotSupp,
        Errno::TOOBIG | Errno::RANGE => Status::XattrTooBig,
        _ => return None,
    })
}

/// Returns the status if the device or this process has failed.
fn of_machine(errno: Errno) -> Status {
    match errno {
        Errno::NXIO => Status::NxIo,
        // The device of the file system was removed, so that none of its objects can be reached.
        Errno::NODEV | Errno::SHUTDOWN | Errno::NOMEDIUM => Status::Stale,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::INTR => Status::Delay,
        Errno::BADF | Errno::FAULT => Status::ServerFault,
        _ => Status::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_spent_quota_are_told_apart() {
        assert_eq!(status(Errno::NOSPC), Status::NoSpc);
        assert_eq!(status(Errno::DQUOT), Status::DQuot);
        assert_eq!(status(Errno::ROFS), Status::RoFs);
    }

    #[test]
    fn a_passing_error_is_delay() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert_eq!(status(errno), Status::Delay);
        }
    }

    #[test]
    fn an_unknown_error_is_the_mediums_fault() {
        assert_eq!(status(Errno::from_raw_os_error(4_000)), Status::Io);
        assert_eq!(status(Errno::IO), Status::Io);
    }
}
