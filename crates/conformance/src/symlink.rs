use comity_vfs::{FileType, SetAttr, SetTime, Status, Time};

use super::Needs;
use super::failure::{Check, fails, same};
use super::fixture::{Fixture, mode, name, times};

super::topic! { "symlink"
    Needs::NONE => the_target_is_kept_byte_for_byte, a_target_of_4095_bytes,
        its_size_is_its_targets,
        readlink_of_something_else_is_inval, symlink_refuses_a_name_that_is_there,
        an_impossible_target_is_refused, its_times_can_be_set,
        it_has_no_data, looking_it_up_does_not_follow_it;
    Needs::STILL_LINKS => reading_leaves_the_atime;
}

fn the_target_is_kept_byte_for_byte(f: &Fixture<'_>) -> Check {
    let all: Vec<u8> = (1..=u8::MAX).collect();
    let targets: [&[u8]; 7] = [b"a", b"../..", b"/etc/passwd", b"a//b/", b" ", b"\xff\xfe", &all];
    for (number, target) in targets.into_iter().enumerate() {
        let link = f.symlink(&number.to_string(), target)?;
        let (found, attr) = f.fs.readlink(&f.owner, &link)?;
        same(&found[..], target)?;
        same(attr.file_type, FileType::Symlink)?;
    }
    Ok(())
}

fn a_target_of_4095_bytes(f: &Fixture<'_>) -> Check {
    let target = vec![b't'; 4095];
    let link = f.symlink("l", &target)?;
    same(&f.fs.readlink(&f.owner, &link)?.0[..], &target[..])
}

fn its_size_is_its_targets(f: &Fixture<'_>) -> Check {
    let link = f.symlink("l", b"some/where")?;
    same(f.attr(&link)?.size, 10)
}

fn readlink_of_something_else_is_inval(f: &Fixture<'_>) -> Check {
    for node in [f.file("a")?, f.top] {
        fails(f.fs.readlink(&f.owner, &node), &[Status::Inval])?;
    }
    Ok(())
}

fn symlink_refuses_a_name_that_is_there(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    f.symlink("l", b"a")?;
    fails(f.symlink("a", b"x"), &[Status::Exist])?;
    fails(f.symlink("l", b"x"), &[Status::Exist])
}

fn an_impossible_target_is_refused(f: &Fixture<'_>) -> Check {
    let refused = [Status::Inval, Status::NameTooLong, Status::NoEnt];
    for target in [&b""[..], b"a\0b", &[b't'; 5000]] {
        let made = f.fs.symlink(&f.owner, &f.top, name("l")?, target, &mode(0o777));
        fails(made, &refused)?;
    }
    fails(f.lookup("l"), &[Status::NoEnt])
}

fn reading_leaves_the_atime(f: &Fixture<'_>) -> Check {
    let link = f.symlink("l", b"a")?;
    let old = Time { seconds: 1_000_000, nanoseconds: 5 };
    f.set(&link, &times(old, Time { seconds: 2_000_000, nanoseconds: 6 }))?;
    for _ in 0..3 {
        same(f.fs.readlink(&f.owner, &link)?.1.atime, old)?;
        same(f.attr(&link)?.atime, old)?;
    }
    Ok(())
}

fn its_times_can_be_set(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let link = f.symlink("l", b"a")?;
    let target = f.lookup("a")?.attr;
    let time = Time { seconds: 86_400, nanoseconds: 123_456_789 };
    let set = SetAttr { mtime: Some(SetTime::To(time)), ..SetAttr::default() };
    f.set(&link, &set)?;
    same(f.attr(&link)?.mtime, time)?;
    same(f.lookup("a")?.attr.mtime, target.mtime)
}

fn it_has_no_data(f: &Fixture<'_>) -> Check {
    f.filled("a", b"data")?;
    let link = f.symlink("l", b"a")?;
    let refused = [Status::Inval, Status::SymLink];
    fails(f.read(&link, 0, 4), &refused)?;
    fails(f.fs.write(&f.owner, &link, 0, b"x"), &refused)
}

fn looking_it_up_does_not_follow_it(f: &Fixture<'_>) -> Check {
    f.dir("d")?;
    f.symlink("l", b"d")?;
    let dangling = f.symlink("m", b"nowhere")?;
    same(f.lookup("l")?.attr.file_type, FileType::Symlink)?;
    same(f.lookup("m")?.handle, dangling)
}
