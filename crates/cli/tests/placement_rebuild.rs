//! `comity placement rebuild` finds the files of data files again after their folder was lost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use common::placed::{BOTH, UNIT, World, placement, text, write};
use common::raw::Raw;
use common::{Place, Running, wait_until};
use serde_json::Value;

/// The answer of a rebuild.
struct Rebuilt {
    code: Option<i32>,
    answer: Value,
}

impl Rebuilt {
    /// The paths below the folder of the export.
    fn paths(&self, kind: &str, data: &Path) -> Vec<String> {
        let path = |it: &Value| it.as_str().unwrap().replace(data.to_str().unwrap(), "");
        let mut paths: Vec<String> =
            self.answer[kind].as_array().unwrap().iter().map(path).collect();
        paths.sort();
        paths
    }

    fn left(&self) -> usize {
        self.answer["left"].as_array().unwrap().len()
    }
}

fn rebuild(place: &Place, arguments: &[&str]) -> Rebuilt {
    let said = placement(place, &[&["rebuild", "--json"], arguments].concat());
    let answer = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
    Rebuilt { code: said.code, answer }
}

/// A world with two files, `f` and `d/g`, whose data files are labelled.
fn world() -> World {
    let world = World::new();
    let mut client = world.client();
    fs::create_dir(world.file("d")).unwrap();
    for name in ["f", "d/g"] {
        let file = client.open(&world.file(name), BOTH).unwrap();
        write(&mut client, &file.handle, file.stateid, (0, &text(2 * UNIT))).unwrap();
    }
    let is_labelled = || rebuild(&world.place, &["--dry-run"]).left() == 0;
    wait_until("the server labels new files by itself", is_labelled);
    world
}

/// Stops the metadata server, changes something, and starts it again with a configuration in which
/// `from` is replaced by `to`.
fn restarted(world: World, change: impl Fn(&Place), (from, to): (&str, &str)) -> World {
    let World { place, stores, mds } = world;
    mds.stop();
    change(&place);
    let config = fs::read_to_string(place.path("config.toml")).unwrap().replace(from, to);
    let config = place.write("config.toml", &config);
    let mds = Running::start(place.serve(&["--config"]).arg(config));
    World { place, stores, mds }
}

/// The bytes of a file in a folder at the top of an export, as a client of NFSv3 reads them.
fn read(world: &World, export: &Path, path: &[&str]) -> Vec<u8> {
    let mut third = Raw::connect(world.mds.port, 0);
    let top = third.mount(export).unwrap();
    let file = path.iter().fold(top, |dir, name| third.lookup(&dir, name.as_bytes()).unwrap());
    third.read(&file).unwrap()
}

fn empty(folder: &Path) {
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn files_of_a_lost_folder_are_created_again_with_their_bytes() {
    let world = restarted(world(), |place| empty(&place.data()), ("", ""));
    let data = world.place.data();
    let trial = rebuild(&world.place, &["--dry-run"]);
    assert_eq!(trial.paths("created", &data), ["/d/g", "/f"]);
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "a trial changes nothing");
    let rebuilt = rebuild(&world.place, &[]);
    assert_eq!(rebuilt.paths("created", &data), ["/d/g", "/f"]);
    assert_eq!((rebuilt.code, rebuilt.left()), (Some(0), 0), "{}", rebuilt.answer);
    assert_eq!(fs::metadata(data.join("d/g")).unwrap().size(), 2 * UNIT);
    assert_eq!(read(&world, &data, &["f"]), text(2 * UNIT));
    assert_eq!(read(&world, &data, &["d", "g"]), text(2 * UNIT));
    let said = placement(&world.place, &["check"]);
    assert_eq!((said.out.as_str(), said.code), ("2 files: all right\n", Some(0)), "{}", said.err);
    let said = placement(&world.place, &["rebuild"]);
    let kept = "0 files placed again, 0 created; 0 data files left, 4 in their places\n";
    assert_eq!((said.out.as_str(), said.code), (kept, Some(0)));
}

#[test]
fn a_folder_that_was_restored_elsewhere_gets_the_places_of_the_one_before() {
    let world = world();
    let (before, data) = (world.place.path("elsewhere"), world.place.data());
    let copy = |place: &Place| {
        let done = Command::new("cp").arg("-r").args([place.data(), before.clone()]).status();
        assert!(done.unwrap().success());
        fs::remove_dir_all(place.data()).unwrap();
    };
    let paths = [&data, &before].map(|it| it.to_str().unwrap().to_owned());
    let world = restarted(world, copy, (&paths[0], &paths[1]));
    assert_eq!(read(&world, &before, &["f"]), vec![0; 2 * UNIT as usize]);
    let other = rebuild(&world.place, &[]);
    assert_eq!((other.code, other.left()), (Some(1), 4));
    let why = other.answer["left"][0]["text"].as_str().unwrap();
    assert!(why.contains(&format!("`--from {}` takes it", paths[0])), "{why}");
    let rebuilt = rebuild(&world.place, &[&paths[1], "--from", &paths[0]]);
    assert_eq!(rebuilt.paths("placed", &before), ["/d/g", "/f"], "{}", rebuilt.answer);
    assert_eq!(read(&world, &before, &["d", "g"]), text(2 * UNIT));
    let said = placement(&world.place, &["label"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.starts_with("2 files: "), "{}", said.out);
    assert_eq!(rebuild(&world.place, &[]).left(), 0, "the labels name the folder of now");
}

#[test]
fn data_files_of_a_replaced_file_do_not_take_the_path_of_its_successor() {
    // The data files of a file that was replaced stay if no data server answered.
    let world = restarted(world(), |place| empty(&place.data()), ("", ""));
    let data = world.place.data();
    let mut client = world.client();
    let file = client.open(&data.join("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, b"newer")).unwrap();
    wait_until("the new file is labelled", || {
        !rebuild(&world.place, &["--dry-run"]).answer.to_string().contains("no label")
    });
    let world = restarted(world, |place| empty(&place.data()), ("", ""));
    for arguments in [&["--dry-run"][..], &[]] {
        let rebuilt = rebuild(&world.place, arguments);
        assert_eq!(rebuilt.paths("created", &data), ["/d/g"], "{}", rebuilt.answer);
        assert_eq!((rebuilt.code, rebuilt.left() > 1), (Some(1), true));
    }
}

#[test]
fn a_file_below_a_renamed_directory_that_has_lost_its_attribute_gets_its_place_back() {
    let lose = |place: &Place| {
        fs::rename(place.data().join("d"), place.data().join("e")).unwrap();
        let file = place.data().join("e/g");
        let mut strip = Command::new("setfattr");
        let done = strip.args(["-x", "user.comity.placement"]).arg(file).status();
        assert!(done.unwrap().success());
    };
    let world = restarted(world(), lose, ("", ""));
    let data = world.place.data();
    assert_eq!(read(&world, &data, &["e", "g"]), vec![0; 2 * UNIT as usize]);
    let rebuilt = rebuild(&world.place, &[]);
    assert_eq!(rebuilt.paths("placed", &data), ["/e/g"], "{}", rebuilt.answer);
    assert_eq!(read(&world, &data, &["e", "g"]), text(2 * UNIT));
    assert_eq!(rebuilt.paths("created", &data), Vec::<String>::new());
}

#[test]
fn a_data_server_that_is_down_is_named() {
    let World { place, stores: [_one, two], mds: _mds } = world();
    two.stop();
    let is_noticed = || rebuild(&place, &["--dry-run"]).code == Some(1);
    wait_until("the loss of the data server is noticed", is_noticed);
    let rebuilt = rebuild(&place, &["--dry-run"]);
    assert_eq!(rebuilt.answer["unread"][0]["server"], "b", "{}", rebuilt.answer);
}
