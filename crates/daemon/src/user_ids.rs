use std::ffi::CString;

use comity_vfs::{Cred, Disk, Gid, Uid};
use nix::errno::Errno;
use nix::unistd::{User, getgrouplist};

/// The ids of a user of this machine, from all its user databases: uid, primary group and other
/// groups. A number stands for the user with that uid. `None` if there is no such user.
///
/// # Errors
/// The ids cannot be found now, for example because a directory service does not answer.
pub(crate) fn cred_of(user: &str) -> Result<Option<Cred<Disk>>, Errno> {
    let Ok(name) = CString::new(user) else { return Ok(None) };
    let known = match user.parse() {
        Ok(uid) => User::from_uid(nix::unistd::Uid::from_raw(uid)),
        Err(_) => User::from_name(user),
    };
    let known = match known {
        // Some services return these errors for an unknown user (getpwnam(3)).
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
    fn root_is_found_by_name_and_number_and_unknown_users_are_not() {
        let root = cred_of("root").unwrap().unwrap();
        assert_eq!((root.uid.number(), root.gid.number()), (0, 0));
        assert_eq!(cred_of("0"), Ok(Some(root)));
        assert_eq!(cred_of("no such user"), Ok(None));
        assert_eq!(cred_of("a\0b"), Ok(None));
        assert_eq!(cred_of("4123456789"), Ok(None));
    }
}
