use comity_proto::nfs4::ChangeInfo4;
use comity_vfs::{Attr, Change, Disk};

/// The change of a directory, from its attributes before and after the operation in the same
/// COMPOUND, and from `change_info4`. `before` is set only if no other change came between.
pub(super) fn change_of(
    before: Attr<Disk>,
    info: ChangeInfo4,
    after: Option<Attr<Disk>>,
) -> Change<Disk> {
    let is_next = after.is_some_and(|after| after.change == info.after);
    let is_sole = info.atomic && before.change == info.before && is_next;
    Change { before: is_sole.then_some(before), after }
}

#[cfg(test)]
mod tests {
    use comity_vfs::{Device, FileType, Gid, Mode, Time, Uid};

    use super::*;

    fn attr(change: u64) -> Attr<Disk> {
        let time = Time::default();
        Attr {
            file_type: FileType::Directory,
            mode: Mode::new(0o755),
            links: 2,
            uid: Uid::new(0),
            gid: Gid::new(0),
            size: 0,
            used: 0,
            device: Device::default(),
            fsid: 0,
            fileid: 1,
            atime: time,
            mtime: time,
            ctime: time,
            change,
        }
    }

    #[test]
    fn attributes_before_a_change_are_used_only_if_all_numbers_match() {
        let info = |atomic, before, after| ChangeInfo4 { atomic, before, after };
        let sole = change_of(attr(3), info(true, 3, 5), Some(attr(5)));
        assert_eq!(sole, Change { before: Some(attr(3)), after: Some(attr(5)) });
        for (info, after) in [
            (info(false, 3, 5), 5), // the server cannot say
            (info(true, 4, 5), 5),  // something came before
            (info(true, 3, 5), 6),  // something came after
        ] {
            let change = change_of(attr(3), info, Some(attr(after)));
            assert_eq!(change, Change { before: None, after: Some(attr(after)) });
        }
        assert_eq!(change_of(attr(3), info(true, 3, 5), None), Change::UNKNOWN);
    }
}
