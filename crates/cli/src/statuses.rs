/// Statuses of NFSv3 (RFC 1813, 2.6) without their prefix. Those of MOUNT (RFC 1813, 5.1.5) are
/// among them, with the same numbers.
const STATUSES: &[(u32, &str)] = &[
    (0, "OK"),
    (1, "PERM"),
    (2, "NOENT"),
    (5, "IO"),
    (6, "NXIO"),
    (13, "ACCES"),
    (17, "EXIST"),
    (18, "XDEV"),
    (19, "NODEV"),
    (20, "NOTDIR"),
    (21, "ISDIR"),
    (22, "INVAL"),
    (27, "FBIG"),
    (28, "NOSPC"),
    (30, "ROFS"),
    (31, "MLINK"),
    (63, "NAMETOOLONG"),
    (66, "NOTEMPTY"),
    (69, "DQUOT"),
    (70, "STALE"),
    (71, "REMOTE"),
    (10001, "BADHANDLE"),
    (10002, "NOT_SYNC"),
    (10003, "BAD_COOKIE"),
    (10004, "NOTSUPP"),
    (10005, "TOOSMALL"),
    (10006, "SERVERFAULT"),
    (10007, "BADTYPE"),
    (10008, "JUKEBOX"),
];

/// How metrics spell a status.
pub(crate) fn name(status: u32) -> &'static str {
    let known = STATUSES.iter().find(|(number, _)| *number == status);
    known.map_or("unknown", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_names_of_the_rfc() {
        assert_eq!(name(0), "OK");
        assert_eq!(name(10008), "JUKEBOX");
        assert_eq!(name(3), "unknown");
    }
}
