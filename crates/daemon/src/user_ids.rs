use comity_vfs::{Cred, Disk, Gid, Uid};

/// The ids of a user of this machine, from wherever it has its users: its uid, its primary group
/// and its other groups. A number stands for the user of that uid.
pub(crate) fn cred_of(user: &str) -> Option<Cred<Disk>> {
    let known = match user.parse() {
        Ok(uid) => uzers::get_user_by_uid(uid),
        Err(_) => uzers::get_user_by_name(user),
    }?;
    let gid = known.primary_group_id();
    let groups = uzers::get_user_groups(known.name(), gid).unwrap_or_default();
    let groups = groups.iter().map(|group| group.gid()).filter(|other| *other != gid);
    let cred = Cred::new(Uid::new(known.uid()), Gid::new(gid));
    Some(cred.with_groups(groups.map(Gid::new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number_and_nobody_by_chance() {
        let root = cred_of("root").unwrap();
        assert_eq!((root.uid.number(), root.gid.number()), (0, 0));
        assert_eq!(cred_of("0"), Some(root));
        assert_eq!(cred_of("no such user"), None);
        assert_eq!(cred_of("4123456789"), None);
    }
}
