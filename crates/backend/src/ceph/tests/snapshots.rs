//! Snapshots are found under a name of their own, are read-only, and do not change.

use std::ops::ControlFlow;

use comity_vfs::{Create, Fs, Handle, Listed, Mode, Node, Result, SetAttr, Special, Status};

use super::{Ceph, look_up, make_dir, make_file, name, open, read, root, shared_cluster, write};

#[test]
fn a_snapshot_is_read_only_and_has_objects_of_its_own() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let dir = make_dir(&fs, &fs.root(), "snapped");
    let file = make_file(&fs, &dir, "file");
    write(&fs, &file, b"old").unwrap();
    fs.commit(&file).unwrap();
    let shots = look_up(&fs, &dir, ".snap").unwrap();
    assert_eq!(fs.mkdir(&root(), &shots.handle, name("s"), &SetAttr::default()), Err(Status::RoFs));
    // An administrator takes the snapshot by a directory of this name.
    let inode = fs.inode(fs.vino(&shots.handle).unwrap()).unwrap();
    inode.mkdir((c"s", 0o755), fs.mount.root_perms()).unwrap();
    write(&fs, &file, b"new").unwrap();
    let shot = look_up(&fs, &shots.handle, "s").unwrap();
    let then = look_up(&fs, &shot.handle, "file").unwrap();
    assert_eq!(read(&fs, &then.handle).unwrap(), b"old");
    assert_eq!(read(&fs, &file).unwrap(), b"new");
    assert_ne!(then.attr.fileid, fs.getattr(&file).unwrap().fileid);
    check_refusals(&fs, &shot.handle, &then.handle);
    drop(inode);
    drop(fs);
    let fs = open(cluster);
    assert_eq!(read(&fs, &then.handle).unwrap(), b"old", "the handle outlives the mount");
    assert_eq!(look_up(&fs, &shots.handle, "s").unwrap().handle, shot.handle);
    let parent = |dir: &Handle| fs.parent(&root(), dir).unwrap().handle;
    assert_eq!((parent(&shot.handle), parent(&shots.handle)), (shots.handle, dir));
    let mut listed = Vec::new();
    fs.readdir(&root(), &shot.handle, 0, Listed::Nodes, &mut |entry| {
        listed.push((entry.fileid, entry.node.map(|node| node.handle)));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(listed, [(then.attr.fileid, Some(then.handle))]);
}

/// Checks that nothing in a snapshot can be changed.
fn check_refusals(fs: &Ceph, dir: &Handle, file: &Handle) {
    let read_only = Err(Status::RoFs);
    let mode = SetAttr { mode: Some(Mode::new(0o600)), ..SetAttr::default() };
    assert_eq!(write(fs, file, b"x").map(drop), read_only);
    assert_eq!(fs.setattr(&root(), file, &mode, None).map(drop), read_only);
    assert_eq!(fs.remove(&root(), dir, name("file")).map(drop), read_only);
    let how = Create::Guarded(SetAttr::default());
    assert_eq!(fs.create(&root(), dir, name("new"), &how).map(drop), read_only);
    let moved = fs.rename(&root(), (dir, name("file")), (&fs.root(), name("moved")));
    assert_eq!(moved.map(drop), read_only);
    assert_eq!(fs.link(&root(), file, &fs.root(), name("link")).map(drop), Err(Status::XDev));
}

/// A directory with a directory and a file in it, all of which a snapshot has, and what it has.
struct Snapped {
    dir: Handle,
    sub: Handle,
    shot: Node<comity_vfs::Disk>,
    sub_then: Handle,
    file_then: Handle,
}

fn take_snapshot(fs: &Ceph, called: &str) -> Snapped {
    let dir = make_dir(fs, &fs.root(), called);
    let sub = make_dir(fs, &dir, "sub");
    let file = make_file(fs, &sub, "file");
    write(fs, &file, b"old").unwrap();
    fs.commit(&file).unwrap();
    let shots = look_up(fs, &dir, ".snap").unwrap();
    let inode = fs.inode(fs.vino(&shots.handle).unwrap()).unwrap();
    inode.mkdir((c"s", 0o755), fs.mount.root_perms()).unwrap();
    let shot = look_up(fs, &shots.handle, "s").unwrap();
    let sub_then = look_up(fs, &shot.handle, "sub").unwrap().handle;
    let file_then = look_up(fs, &sub_then, "file").unwrap().handle;
    Snapped { dir, sub, shot, sub_then, file_then }
}

/// A client that is in a directory of a snapshot knows its handle only.
#[test]
fn a_directory_of_a_snapshot_that_is_found_by_its_handle_shows_what_was_then() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let Snapped { dir, sub, shot, sub_then, file_then } = take_snapshot(&fs, "by-handle");
    fs.remove(&root(), &sub, name("file")).unwrap();
    make_file(&fs, &sub, "later");
    drop(fs);
    let fs = open(cluster);
    assert_eq!(names(&fs, &sub_then).unwrap(), ["file"], "it is listed");
    drop(fs);
    let fs = open(cluster);
    assert_eq!(look_up(&fs, &sub_then, "file").map(|it| it.handle), Ok(file_then));
    assert_eq!(look_up(&fs, &sub_then, "later").map(drop), Err(Status::NoEnt));
    drop(fs);
    let fs = open(cluster);
    let parent = fs.parent(&root(), &sub_then).unwrap().handle;
    assert!(parent != dir && parent != sub, "the parent is no current directory");
    assert_eq!(look_up(&fs, &shot.handle, "sub").map(|it| it.handle), Ok(sub_then));
}

/// A directory that was removed is the usual reason to look into a snapshot.
#[test]
fn a_directory_that_was_removed_since_the_snapshot_is_listed() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let Snapped { dir, sub, sub_then, file_then, .. } = take_snapshot(&fs, "removed-since");
    fs.remove(&root(), &sub, name("file")).unwrap();
    fs.rmdir(&root(), &dir, name("sub")).unwrap();
    let check = |fs: &Ceph| {
        let shots = look_up(fs, &dir, ".snap").unwrap().handle;
        let shot = look_up(fs, &shots, "s").unwrap().handle;
        assert_eq!(look_up(fs, &shot, "sub").map(|it| it.handle), Ok(sub_then));
        assert_eq!(names(fs, &sub_then), Ok(vec!["file".to_owned()]));
        assert_eq!(look_up(fs, &sub_then, "none").map(drop), Err(Status::NoEnt));
        assert_eq!(names(fs, &sub_then), Ok(vec!["file".to_owned()]));
        assert_eq!(look_up(fs, &sub_then, "file").map(|it| it.handle), Ok(file_then));
        assert_eq!(read(fs, &file_then).unwrap(), b"old");
        assert_eq!(fs.parent(&root(), &sub_then).map(|it| it.handle), Ok(shot));
    };
    check(&fs);
    drop(fs);
    check(&open(cluster));
    let stale = Err(Status::Stale);
    assert_eq!(names(&open(cluster), &sub_then), stale, "its path is not known");
}

fn names(fs: &Ceph, dir: &Handle) -> Result<Vec<String>> {
    let mut names = Vec::new();
    fs.readdir(&root(), dir, 0, Listed::Nodes, &mut |entry| {
        names.push(String::from_utf8(entry.name.bytes().to_vec()).unwrap());
        ControlFlow::Continue(())
    })?;
    names.sort_unstable();
    Ok(names)
}

/// Ceph would take the name, and no client could reach the object or the snapshots afterwards.
#[test]
fn nothing_gets_the_name_of_the_snapshots() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let dir = make_dir(&fs, &fs.root(), "no-such-name");
    let (file, _) = (make_file(&fs, &dir, "file"), make_dir(&fs, &dir, "sub"));
    let (snap, none, me) = (name(".snap"), SetAttr::default(), root());
    let exist = Err(Status::Exist);
    assert_eq!(fs.mkdir(&me, &dir, snap, &none).map(drop), exist);
    assert_eq!(fs.symlink(&me, &dir, snap, b"target", &none).map(drop), exist);
    assert_eq!(fs.mknod(&me, &dir, snap, Special::Fifo, &none).map(drop), exist);
    assert_eq!(fs.create(&me, &dir, snap, &Create::Guarded(none)).map(drop), exist);
    assert_eq!(fs.link(&me, &file, &dir, snap).map(drop), exist);
    for moved in ["file", "sub"] {
        assert_eq!(fs.rename(&me, (&dir, name(moved)), (&dir, snap)).map(drop), exist, "{moved}");
    }
    let refused = Err(Status::Acces);
    assert_eq!(fs.rename(&me, (&dir, snap), (&dir, name("moved"))).map(drop), refused);
    assert_eq!(fs.remove(&me, &dir, snap).map(drop), refused);
    assert_eq!(fs.rmdir(&me, &dir, snap).map(drop), refused);
    assert_eq!(names(&fs, &dir).unwrap(), ["file", "sub"]);
    take_snapshot(&fs, "it-is-still-there");
}
