use comity_vfs::{Create, FileType, Name, SetAttr, Status};

use super::Needs;
use super::failure::{Check, ensure, fails, same};
use super::fixture::{Fixture, mode, name, size, times};

super::topic! { "create"
    Needs::NONE => a_new_file_is_empty_and_has_its_mode, guarded_refuses_a_name_that_is_there,
        unchecked_takes_a_file_as_it_is, unchecked_cuts_a_file_to_the_size_given,
        unchecked_leaves_the_mode_of_a_file_alone, unchecked_makes_a_file,
        no_file_takes_a_directorys_name, no_file_takes_a_links_name,
        an_exclusive_retry_finds_its_own_file, another_exclusive_create_fails,
        exclusive_refuses_a_file_made_otherwise, an_exclusive_file_can_be_written_by_its_maker,
        a_file_is_no_directory, every_byte_but_two_may_stand_in_a_name,
        names_of_255_bytes_are_kept, a_size_may_be_given_at_creation,
        times_may_be_given_at_creation, a_new_directory_is_empty_and_has_two_links,
        mkdir_refuses_a_name_that_is_there, fileids_differ;
}

fn a_new_file_is_empty_and_has_its_mode(f: &Fixture<'_>) -> Check {
    let node = f.file_as(&f.owner, &f.top, "a", 0o640)?;
    same(node.attr.file_type, FileType::Regular)?;
    same(node.attr.mode.bits(), 0o640)?;
    same((node.attr.size, node.attr.links), (0, 1))?;
    same((node.attr.uid, node.attr.gid), (f.owner.uid, f.owner.gid))?;
    let found = f.lookup("a")?;
    same(found.handle, node.handle)?;
    same(found.attr, node.attr)
}

fn guarded_refuses_a_name_that_is_there(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    fails(f.file("a"), &[Status::Exist])
}

fn unchecked_takes_a_file_as_it_is(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    let how = Create::Unchecked(SetAttr::default());
    let again = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    same(again.handle, file)?;
    same(again.attr.size, 4)?;
    same(f.read(&file, 0, 10)?.0, b"data".to_vec())
}

fn unchecked_cuts_a_file_to_the_size_given(f: &Fixture<'_>) -> Check {
    let file = f.filled("a", b"data")?;
    let how = Create::Unchecked(size(0));
    let again = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    same((again.handle, again.attr.size), (file, 0))
}

fn unchecked_leaves_the_mode_of_a_file_alone(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let how = Create::Unchecked(mode(0o600));
    let again = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    same(again.attr.mode.bits(), 0o644)
}

fn unchecked_makes_a_file(f: &Fixture<'_>) -> Check {
    let how = Create::Unchecked(mode(0o600));
    let made = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    same(made.attr.mode.bits(), 0o600)?;
    same(f.lookup("a")?.handle, made.handle)
}

fn no_file_takes_a_directorys_name(f: &Fixture<'_>) -> Check {
    f.dir("a")?;
    for how in
        [Create::Unchecked(mode(0o600)), Create::Guarded(mode(0o600)), Create::Exclusive([1; 8])]
    {
        let made = f.fs.create(&f.owner, &f.top, name("a")?, &how);
        fails(made, &[Status::Exist, Status::IsDir])?;
    }
    Ok(())
}

fn no_file_takes_a_links_name(f: &Fixture<'_>) -> Check {
    f.symlink("a", b"b")?;
    for how in
        [Create::Unchecked(mode(0o600)), Create::Guarded(mode(0o600)), Create::Exclusive([1; 8])]
    {
        let made = f.fs.create(&f.owner, &f.top, name("a")?, &how);
        fails(made, &[Status::Exist, Status::SymLink])?;
    }
    fails(f.lookup("b"), &[Status::NoEnt])
}

fn an_exclusive_retry_finds_its_own_file(f: &Fixture<'_>) -> Check {
    let how = Create::Exclusive(*b"verifier");
    let made = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    let again = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    same(made.handle, again.handle)
}

fn another_exclusive_create_fails(f: &Fixture<'_>) -> Check {
    for (number, verifier) in [[0; 8], [0xff; 8], *b"verifier"].into_iter().enumerate() {
        let name = number.to_string();
        f.fs.create(&f.owner, &f.top, self::name(&name)?, &Create::Exclusive(verifier))?;
        let other = Create::Exclusive(verifier.map(|byte| byte ^ 1));
        let made = f.fs.create(&f.owner, &f.top, self::name(&name)?, &other);
        fails(made, &[Status::Exist])?;
    }
    Ok(())
}

fn exclusive_refuses_a_file_made_otherwise(f: &Fixture<'_>) -> Check {
    f.file("a")?;
    let made = f.fs.create(&f.owner, &f.top, name("a")?, &Create::Exclusive([0; 8]));
    fails(made, &[Status::Exist])
}

fn an_exclusive_file_can_be_written_by_its_maker(f: &Fixture<'_>) -> Check {
    let how = Create::Exclusive(*b"verifier");
    let made = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    f.write(&made.handle, 0, b"data")?;
    f.set(&made.handle, &mode(0o644))?;
    same(f.read(&made.handle, 0, 9)?.0, b"data".to_vec())
}

fn a_file_is_no_directory(f: &Fixture<'_>) -> Check {
    let file = f.file("a")?;
    fails(f.file_in(&file, "b"), &[Status::NotDir])?;
    fails(f.dir_in(&file, "b"), &[Status::NotDir])
}

fn every_byte_but_two_may_stand_in_a_name(f: &Fixture<'_>) -> Check {
    for byte in (1..=u8::MAX).filter(|byte| *byte != b'/') {
        let bytes = [b'x', byte];
        let how = Create::Guarded(mode(0o600));
        let made = f.fs.create(&f.owner, &f.top, Name::new(&bytes)?, &how)?.value;
        let found = f.fs.lookup(&f.owner, &f.top, Name::new(&bytes)?)?.node;
        same(found.handle, made.handle)?;
    }
    let names = f.names(&f.top, 50)?;
    same(names.len(), 254)?;
    ensure(names.iter().all(|name| matches!(name[..], [b'x', _])), "names are listed as made")
}

fn names_of_255_bytes_are_kept(f: &Fixture<'_>) -> Check {
    let long = "n".repeat(255);
    f.file(&long)?;
    f.dir(&long.replace('n', "d"))?;
    f.lookup(&long)?;
    same(f.names(&f.top, 1)?, vec![long.replace('n', "d").into(), long.into()])
}

fn a_size_may_be_given_at_creation(f: &Fixture<'_>) -> Check {
    let how = Create::Guarded(SetAttr { size: Some(100), ..mode(0o600) });
    let made = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    same(made.attr.size, 100)?;
    same(f.read(&made.handle, 0, 200)?, (vec![0; 100], true))
}

fn times_may_be_given_at_creation(f: &Fixture<'_>) -> Check {
    let time = |seconds| comity_vfs::Time { seconds, nanoseconds: 5 };
    let set = SetAttr { mode: mode(0o600).mode, ..times(time(10), time(20)) };
    let how = Create::Guarded(set);
    let made = f.fs.create(&f.owner, &f.top, name("a")?, &how)?.value;
    same((made.attr.atime, made.attr.mtime), (time(10), time(20)))
}

fn a_new_directory_is_empty_and_has_two_links(f: &Fixture<'_>) -> Check {
    let node = f.dir_as(&f.owner, &f.top, "d", 0o750)?;
    same(node.attr.file_type, FileType::Directory)?;
    same(node.attr.mode.bits(), 0o750)?;
    same(f.names(&node.handle, 10)?, vec![])?;
    // Some file systems (btrfs) do not count subdirectories as links.
    ensure(matches!(node.attr.links, 1 | 2), "a directory without directories has 1 or 2 links")
}

fn mkdir_refuses_a_name_that_is_there(f: &Fixture<'_>) -> Check {
    f.dir("d")?;
    f.file("a")?;
    f.symlink("l", b"d")?;
    for name in ["d", "a", "l"] {
        fails(f.dir(name), &[Status::Exist])?;
    }
    Ok(())
}

fn fileids_differ(f: &Fixture<'_>) -> Check {
    let mut fileids = Vec::new();
    for node in [f.file("a")?, f.file("b")?, f.dir("d")?, f.symlink("l", b"a")?, f.top] {
        fileids.push(f.attr(&node)?.fileid);
    }
    fileids.sort_unstable();
    fileids.dedup();
    same(fileids.len(), 5)
}
