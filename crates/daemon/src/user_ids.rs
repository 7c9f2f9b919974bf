use std::ffi::CString;

use comity_vfs::{Cred, Disk, Gid, Uid};
use nix::errno::Errno;
use nix::unistd::{User, getgrouplist};

/// The ids of a user of this machine, from wherever it has its users: its uid, its primary group
/// and its other groups. A number stands for the user of that uid. `None` if there is no such user.
///
/// # Errors
/// It cannot be found out now: a directory service does not answer, for example.
pub(crate) fn cred_of(user: &str) -> Result<Option<Cred<Disk>>, Errno> {
    let Ok(name) = CString::new(user) else { return Ok(None) };
    let known = match user.parse() {
        Ok(uid) => User::from_uid(nix::unistd::Uid::from_raw(uid)),
        Err(_) => User::from_name(user),
    };
    let known = match known {
        // Some services say so instead of finding nothing (getpwnam(3)).
        Err(Errno::ENOENT | Errno::ESRCH) | Ok(None) => return Ok(None),
        known => known?,
    };
    let Some(known) = known else { return Ok(None) };
    let name = CString::new(known.name).unwrap_or(name);
    let groups = getgrouplist(&name, known.gid)?;
    let groups = groups.into_iter().filter(|other| *other != known.gid);
    let cred = Cred::new(Uid::new(known.uid.as_raw()), Gid::new(known.gid.as_raw()));
    Ok(Some(cred.with_groups(groups.map(|group| Gid::new(group.as_raw())))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number_and_nobody_by_chance() {
        let root = cred_of("root").unwrap().unwrap();
        assert_eq!((root.uid.number(), root.gid.number()), (0, 0));
        assert_eq!(cred_of("0"), Ok(Some(root)));
        assert_eq!(cred_of("no such user"), Ok(None));
        assert_eq!(cred_of("a\0b"), Ok(None));
        assert_eq!(cred_of("4123456789"), Ok(None));
    }
}
