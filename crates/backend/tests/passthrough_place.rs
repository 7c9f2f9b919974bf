//! The directories that hold a file, as far as the kernel can tell.
#![allow(clippy::unwrap_used)]

mod common;

use comity_vfs::{Fs, Handle};
use common::{mode, name, root, serve};

#[test]
fn the_directory_of_a_file_follows_renames_by_any_program() {
    let served = serve();
    let top = served.root();
    let make = |dir: &[u8]| served.fs.mkdir(&root(), &top, name(dir), &mode(0o755)).unwrap();
    let (one, other) = (make(b"one").value.handle, make(b"other").value.handle);
    let file = served.create(&root(), "file", 0o644).unwrap().handle;
    let directories = || served.fs.directories_of(&file).unwrap();
    assert_eq!(directories(), [top]);
    served.fs.rename(&root(), (&top, name(b"file")), (&one, name(b"file"))).unwrap();
    assert_eq!(directories(), [one]);
    let path = |place: &str| served.folder.path().join(place);
    std::fs::rename(path("one/file"), path("other/renamed")).unwrap();
    assert_eq!(directories(), [other]);
    std::fs::rename(path("other"), path("one/below")).unwrap();
    assert_eq!(directories(), [other]);
}

#[test]
fn a_removed_file_is_in_no_directory_even_if_another_has_its_name() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap().handle;
    assert_eq!(served.fs.directories_of(&file).unwrap().len(), 1);
    let path = served.folder.path().join("file");
    std::fs::rename(&path, served.folder.path().join("gone")).unwrap();
    std::fs::write(&path, b"another").unwrap();
    std::fs::remove_file(served.folder.path().join("gone")).unwrap();
    let directories = served.fs.directories_of(&file);
    assert_eq!(directories.unwrap_or_default(), [] as [Handle; 0]);
}

#[test]
fn a_file_that_was_moved_out_of_the_folder_is_in_none_of_its_directories() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap().handle;
    let outside = served.folder.path().parent().unwrap().join("moved-out-of-the-folder");
    std::fs::rename(served.folder.path().join("file"), &outside).unwrap();
    let directories = served.fs.directories_of(&file);
    std::fs::remove_file(&outside).unwrap();
    let inside = |dir: &Handle| *dir == served.root();
    assert!(!directories.unwrap_or_default().iter().any(inside));
}

#[test]
fn a_program_beside_the_server_finds_the_handle_that_the_server_has() {
    let served = serve();
    let dir = served.mkdir(&root(), "dir", 0o755).unwrap();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let path = |name: &str| served.folder.path().join(name);
    assert_eq!(comity_backend::handle_of(&path("dir")), Ok(dir.handle));
    assert_eq!(comity_backend::handle_of(&path("file")), Ok(file.handle));
    assert_eq!(comity_backend::handle_of(&path("")), Ok(served.root()));
    assert_eq!(comity_backend::handle_of(&path("none")), Err(comity_vfs::Status::NoEnt));
}
