//! A server of this program, mounted by this program with and without the disk cache.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::{Duration, Instant};

use common::world::World;
use common::{comity, metrics, run, wait_until};

const OPTIONS: &str = "rw,insecure,no_root_squash";

fn world() -> Option<World> {
    exporting("")
}

/// Starts a server whose export has more options.
fn exporting(more: &str) -> Option<World> {
    World::exporting(&format!("{OPTIONS}{more}"), &[])
}

/// The number of calls of an operation that the server has answered.
fn calls(world: &World, operation: &str) -> u64 {
    world.counted(&["operations_total", &format!("operation=\"{operation}\"")])
}

#[test]
fn files_of_a_server_are_read_and_written() {
    let Some(world) = world() else { return };
    fs::write(world.place.data().join("there"), "from the server").unwrap();
    world.mount("nodc_enable");
    assert_eq!(fs::read_to_string(world.dir.join("there")).unwrap(), "from the server");
    fs::create_dir(world.dir.join("dir")).unwrap();
    fs::write(world.dir.join("dir/new"), "from the client").unwrap();
    let seen = fs::read_to_string(world.place.data().join("dir/new")).unwrap();
    assert_eq!(seen, "from the client");
    let names: Vec<_> = fs::read_dir(&world.dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2);
    world.umount();
}

#[test]
fn a_file_is_fetched_once_also_over_mounts() {
    let Some(world) = world() else { return };
    let data: Vec<u8> = (0..3_000_000).map(|at| (at % 251) as u8).collect();
    fs::write(world.place.data().join("file"), &data).unwrap();
    let mut reads = Vec::new();
    for _ in 0..2 {
        world.mount(&world.cached(""));
        assert!(fs::read(world.dir.join("file")).unwrap() == data);
        world.umount();
        reads.push(calls(&world, "READ"));
    }
    assert!(reads[0] > 0 && reads[0] == reads[1], "{reads:?}");
    fs::write(world.place.data().join("file"), "changed").unwrap();
    world.mount(&world.cached(""));
    assert_eq!(fs::read_to_string(world.dir.join("file")).unwrap(), "changed");
}

#[test]
fn small_appends_are_sent_together_and_are_there_after_the_close() {
    let Some(world) = world() else { return };
    world.mount(&world.cached(""));
    let path = world.dir.join("log");
    let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let begun = Instant::now();
    for number in 0..500 {
        writeln!(file, "line {number}").unwrap();
    }
    let mut last = String::new();
    fs::File::open(&path).unwrap().read_to_string(&mut last).unwrap();
    assert_eq!(last.lines().last(), Some("line 499"), "it is seen here at once");
    drop(file);
    let seen = fs::read_to_string(world.place.data().join("log")).unwrap();
    assert_eq!(seen.lines().count(), 500);
    // On a slow machine data reach the age at which they are sent while more are appended.
    let most = 5 + begun.elapsed().as_secs();
    assert!(calls(&world, "WRITE") <= most, "{} WRITEs", calls(&world, "WRITE"));
    let single = fs::write(world.dir.join("single"), "one piece");
    assert!(single.is_ok() && calls(&world, "COMMIT") <= 1, "the last piece was sent as stable");
    world.umount();
}

#[test]
fn the_holder_of_a_lock_reads_what_another_client_wrote_before() {
    use rustix::fs::{FlockOperation, fcntl_lock};
    use std::os::unix::fs::FileExt;
    let Some(world) = world() else { return };
    fs::write(world.place.data().join("file"), "one").unwrap();
    world.mount(&world.cached(",actimeo=600"));
    let dir = world.mount_other();
    let open = |dir: &Path| OpenOptions::new().read(true).write(true).open(dir.join("file"));
    let (here, there) = (open(&world.dir).unwrap(), open(&dir).unwrap());
    let mut seen = [0; 3];
    here.read_exact_at(&mut seen, 0).unwrap();
    fcntl_lock(&there, FlockOperation::LockExclusive).unwrap();
    there.write_all_at(b"two", 0).unwrap();
    fcntl_lock(&there, FlockOperation::Unlock).unwrap();
    fcntl_lock(&here, FlockOperation::LockExclusive).unwrap();
    here.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!(&seen, b"two");
}

#[test]
fn a_file_that_another_client_has_removed_is_missing_and_not_stale() {
    let Some(world) = world() else { return };
    world.mount(&world.cached(",actimeo=600"));
    let other = world.mount_other();
    for round in 0..20 {
        let name = format!("file {round}");
        fs::write(other.join(&name), "data").unwrap();
        let here = world.dir.join(&name);
        here.metadata().unwrap();
        fs::remove_file(other.join(&name)).unwrap();
        assert_eq!(fs::read(&here).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
}

#[test]
fn a_file_that_another_client_has_replaced_is_opened_anew() {
    let Some(world) = world() else { return };
    world.mount(&world.cached(",actimeo=600"));
    let other = world.mount_other();
    for round in 0..20 {
        let (name, backup) = (format!("file {round}"), format!("file {round}~"));
        fs::write(other.join(&name), "old").unwrap();
        let here = world.dir.join(&name);
        here.metadata().unwrap();
        fs::rename(other.join(&name), other.join(&backup)).unwrap();
        fs::write(other.join(&name), "new").unwrap();
        assert_eq!(fs::read_to_string(&here).unwrap(), "new");
        assert_eq!(fs::read_to_string(world.dir.join(&backup)).unwrap(), "old");
    }
}

/// The path of an open file that has no names to look up.
fn path_of_open(file: &fs::File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[test]
fn an_open_file_is_opened_again_whatever_became_of_its_names() {
    let Some(world) = world() else { return };
    world.mount(&world.cached(",actimeo=600"));
    let dir = &world.dir;
    let path = |name: &str| dir.join(name);
    let other = world.mount_other();
    for name in ["removed", "linked", "unlinked", "renamed"] {
        fs::write(path(name), name).unwrap();
        // While another client writes the file it is not delegated, and is opened at the server.
        let writer = OpenOptions::new().append(true).open(other.join(name)).unwrap();
        let file = fs::File::open(path(name)).unwrap();
        match name {
            "removed" => fs::remove_file(path(name)).unwrap(),
            "linked" => {
                fs::hard_link(path(name), path("second")).unwrap();
                fs::remove_file(path("second")).unwrap();
            }
            "unlinked" => {
                fs::hard_link(path(name), path("third")).unwrap();
                fs::remove_file(path(name)).unwrap();
            }
            _ => fs::rename(other.join(name), other.join("moved")).unwrap(),
        }
        assert_eq!(fs::read_to_string(path_of_open(&file)).unwrap(), name);
        drop(writer);
    }
}

#[test]
fn an_open_file_is_opened_again_by_a_user_who_may_not_search_its_directory() {
    let Some(world) = world() else { return };
    world.mount(&world.cached(""));
    let (dir, path) = (world.dir.join("dir"), world.dir.join("dir/file"));
    fs::create_dir(&dir).unwrap();
    fs::write(&path, "data").unwrap();
    let other = world.mount_other();
    let writer = OpenOptions::new().append(true).open(other.join("dir/file")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let mut shell = std::process::Command::new("cat");
    shell.arg("/dev/stdin").stdin(fs::File::open(&path).unwrap()).uid(1).gid(1);
    let read = shell.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&read.stdout), "data", "{read:?}");
    drop(writer);
}

#[test]
fn other_clients_see_length_and_times_of_a_closed_file_that_is_delegated_to_its_writer() {
    use std::os::unix::fs::MetadataExt;
    let Some(world) = world() else { return };
    world.mount(&world.cached(""));
    let path = world.dir.join("file");
    fs::write(&path, "data").unwrap();
    // The file is opened again while it is delegated, for reading and for writing.
    assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    write!(OpenOptions::new().append(true).open(&path).unwrap(), " and more").unwrap();
    let here = path.metadata().unwrap();
    let other = world.mount_other();
    let there = other.join("file").metadata().unwrap();
    assert_eq!(there.len(), 13);
    let times = |seen: &fs::Metadata| (seen.mtime(), seen.mtime_nsec(), seen.ctime_nsec());
    assert_eq!(times(&there), times(&here));
    assert_eq!(times(&there), times(&world.place.data().join("file").metadata().unwrap()));
}

#[test]
fn a_user_gets_no_rights_that_the_mode_of_a_file_denies() {
    let Some(world) = world() else { return };
    world.mount(&world.cached(""));
    let made = world.dir.join("file");
    fs::write(&made, "secret").unwrap();
    fs::set_permissions(world.place.data(), fs::Permissions::from_mode(0o755)).unwrap();
    // Only its owner may enter a temporary folder.
    let top = world.dir.parent().unwrap();
    fs::set_permissions(top, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&made, Some(1), Some(1)).unwrap();
    let as_owner = |line: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", line, "sh"]).arg(&made).uid(1).gid(1).output().unwrap().status.success()
    };
    assert!(as_owner("cat \"$1\""), "it is delegated from now on");
    assert!(!as_owner("chmod 377 \"$1\" && cat \"$1\""), "it may be executed and not read");
    assert!(!as_owner("cat \"$1\""), "nor later");
    fs::set_permissions(&made, fs::Permissions::from_mode(0o477)).unwrap();
    assert!(as_owner("cat \"$1\""));
    assert!(!as_owner("truncate -s 1 \"$1\""), "it may be read and not written");
    assert_eq!(fs::read_to_string(&made).unwrap(), "secret");
}

#[test]
fn a_removed_or_replaced_file_can_be_used_until_its_last_close() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let Some(world) = world() else { return };
    world.mount(&world.cached(""));
    for (name, other) in [("removed", None), ("replaced", Some("other"))] {
        let path = world.dir.join(name);
        fs::write(&path, "data").unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        match other.map(|other| world.dir.join(other)) {
            None => fs::remove_file(&path).unwrap(),
            Some(other) => {
                fs::write(&other, "new").unwrap();
                fs::rename(&other, &path).unwrap();
            }
        }
        let mut seen = [0; 4];
        file.read_exact_at(&mut seen, 0).unwrap();
        file.write_all_at(b"more", 4).unwrap();
        file.sync_all().unwrap();
        assert_eq!((&seen, file.metadata().unwrap().size()), (b"data", 8), "{name}");
    }
    let names = || fs::read_dir(world.place.data()).unwrap().count();
    wait_until("no hidden name is left", || names() == 1);
}

#[test]
fn options_and_sources_that_make_no_sense_are_refused() {
    let Some(world) = world() else { return };
    let mount = |options: &str, source: &str| {
        run(comity().args(["mount", "-o", options, source]).arg(&world.dir))
    };
    let said = mount("soft", "memory:");
    assert!(said.code == Some(1) && said.err.contains("-o soft"), "{}", said.err);
    let nobody = format!("nfs://127.0.0.1:{}/nothing", world.port);
    let said = mount("nodc_enable", &nobody);
    assert!(said.code == Some(1) && said.err.contains("nothing"), "{}", said.err);
    let root = world.place.write("file", "");
    let options = format!("dc_root={}", root.display());
    let said = mount(&options, "memory:");
    assert!(said.code == Some(1) && said.err.contains("dc_root"), "{}", said.err);
}

/// The names in a directory.
fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Lists the directory; then lists it with attributes and looks up twenty missing names, three
/// times.
fn look_around(dir: &Path, files: usize) {
    assert_eq!(names(dir).len(), files);
    for _ in 0..3 {
        let entries = fs::read_dir(dir).unwrap();
        assert_eq!(
            entries.filter(|entry| entry.as_ref().unwrap().metadata().is_ok()).count(),
            files
        );
        for number in 0..20 {
            assert!(!dir.join(format!("missing-{number}")).exists());
        }
    }
}

#[test]
fn repeated_listings_of_a_delegated_directory_need_no_call() {
    let Some(world) = exporting(",dir_delegations=sole-writer") else {
        return;
    };
    fs::create_dir(world.place.data().join("dir")).unwrap();
    for number in 0..50 {
        fs::write(world.place.data().join(format!("dir/{number}")), "").unwrap();
    }
    world.mount(&world.cached(",acregmin=600,acregmax=600,acdirmin=0,acdirmax=0"));
    let calls = || {
        let operations = ["GETATTR", "LOOKUP", "READDIR", "ACCESS", "GET_DIR_DELEGATION"];
        operations.map(|operation| calls(&world, operation))
    };
    look_around(&world.dir.join("dir"), 50);
    // The server counts requests within a tenth of a second as one.
    std::thread::sleep(Duration::from_millis(400));
    look_around(&world.dir.join("dir"), 50);
    let first = calls();
    look_around(&world.dir.join("dir"), 50);
    look_around(&world.dir.join("dir"), 50);
    let last = calls();
    println!("GETATTR, LOOKUP, READDIR, ACCESS, GET_DIR_DELEGATION: {first:?}, later {last:?}");
    assert_eq!(last, first, "repeated rounds cost no call");
    world.umount();
}

#[test]
fn a_directory_that_is_delegated_anew_costs_few_calls_once() {
    let Some(world) = exporting(",dir_delegations=sole-writer:always") else { return };
    fs::create_dir(world.place.data().join("dir")).unwrap();
    for number in 0..50 {
        fs::write(world.place.data().join(format!("dir/{number}")), "").unwrap();
    }
    world.mount(&world.cached(",acregmin=600,acregmax=600,acdirmin=0,acdirmax=0"));
    let dir = world.dir.join("dir");
    for _ in 0..3 {
        look_around(&dir, 50);
    }
    let counts = || {
        ["GET_DIR_DELEGATION", "GETATTR", "LOOKUP", "READDIR"]
            .map(|call| calls(&world, call) as i64)
    };
    let before = counts();
    let mut reload = comity();
    let reloaded = run(reload.args(["reload", "--state-dir"]).arg(world.place.state()));
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.err);
    let recalled = || metric(&world, "comity_directory_delegations") == 0;
    wait_until("all directories are given back", recalled);
    look_around(&dir, 50);
    let after = counts();
    look_around(&dir, 50);
    assert_eq!(counts(), after, "the next round costs no call");
    let spent: Vec<i64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    println!("GET_DIR_DELEGATION, GETATTR, LOOKUP, READDIR: {spent:?}");
    let directories = spent[0];
    assert!((1..=2).contains(&directories), "the root of the mount is one, too: {spent:?}");
    // Each other operation is followed by one or two GETATTRs.
    assert!(spent[1] <= 4 * directories && spent[2] <= 1 && spent[3] <= 1, "{spent:?}");
    world.umount();
}

/// The sum of a metric of the server, over all its labels.
fn metric(world: &World, name: &str) -> u64 {
    let page = metrics(world.server());
    let is_it = |line: &&str| line.split(['{', ' ']).next() == Some(name);
    let values = page.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next());
    values.filter_map(|value| value.parse::<f64>().ok()).sum::<f64>() as u64
}

/// A client of this version of NFS; it is a library and mounts nothing.
fn stranger(world: &World, runtime: &tokio::runtime::Runtime, version: &str) -> Stranger {
    let (port, data) = (world.port, world.place.data());
    let address = format!("nfs://127.0.0.1{}?version={version}", data.display());
    let ports = format!("nfsport={port}&mountport={port}&noresvport=true&uid=0&gid=0");
    runtime.block_on(nfs_rs::parse_url_and_mount(&format!("{address}&{ports}"))).unwrap()
}

type Stranger = Box<dyn nfs_rs::Mount>;

#[test]
fn a_delegated_listing_is_kept_up_to_date_when_others_change_the_directory() {
    let Some(world) = exporting(",dir_delegations=sole-writer:always") else { return };
    fs::write(world.place.data().join("first"), "").unwrap();
    world.mount(&world.cached(",acdirmin=0,acdirmax=0"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for version in ["3", "4.0", "4.1", "4.2"] {
        let other = stranger(&world, &runtime, version);
        for _ in 0..3 {
            names(&world.dir);
        }
        let counts = || ["READDIR", "LOOKUP", "GET_DIR_DELEGATION"].map(|call| calls(&world, call));
        let (before, mut there) = (counts(), names(&world.dir));
        let [one, two] = ["one", "two"].map(|name| format!("{name}-{version}"));
        runtime.block_on(other.create_path(&one, Some(0o644))).unwrap();
        there.insert(one.clone());
        assert_eq!(names(&world.dir), there, "{version}: a file was made");
        runtime.block_on(other.rename_path(&one, &two)).unwrap();
        there.remove(&one);
        there.insert(two.clone());
        assert_eq!(names(&world.dir), there, "{version}: it was renamed");
        runtime.block_on(other.remove_path(&two)).unwrap();
        there.remove(&two);
        assert_eq!(names(&world.dir), there, "{version}: it was removed");
        let after = counts();
        println!("{version}: READDIR, LOOKUP, GET_DIR_DELEGATION: {before:?}, then {after:?}");
        assert_eq!(after[0], before[0], "{version}: no READDIR");
        assert_eq!(after[2], before[2], "{version}: nothing was delegated anew");
    }
    assert_eq!(metric(&world, "comity_directory_delegations_recalled_total"), 0);
    world.umount();
}

/// A pseudorandom number below `bound`; each run has the same sequence.
fn roll(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % bound
}

/// Changes a name in the directory as another client; repeats the change while it is refused
/// because the directory is being recalled.
async fn change(client: &dyn nfs_rs::Mount, seed: &mut u64, there: &mut BTreeSet<String>) {
    let (name, other) = (format!("n{}", roll(seed, 8)), format!("n{}", roll(seed, 8)));
    let (is_there, removes) = (there.contains(&name), roll(seed, 2) == 0);
    for _ in 0..100 {
        let done = match (is_there, removes) {
            (false, _) => client.create_path(&name, Some(0o644)).await.map(drop),
            (true, true) => client.remove_path(&name).await.map(drop),
            (true, false) => client.rename_path(&name, &other).await.map(drop),
        };
        if done.is_ok() {
            there.remove(&name);
            if !is_there || !removes {
                there.insert(if is_there { other } else { name });
            }
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the change of {name} was always refused");
}

#[test]
fn listings_are_never_older_than_an_acknowledged_change_if_changes_recall_the_delegation() {
    let options = ",dir_delegations=sole-writer:always:recall-only";
    let Some((world, granted)) = hunt(options, None) else { return };
    assert!(granted > 50, "it was delegated again and again");
    assert_eq!(metric(&world, "comity_directory_notifications_total"), 0);
    world.umount();
}

#[test]
fn listings_are_never_older_than_an_acknowledged_change_if_changes_are_notified() {
    let options = ",dir_delegations=sole-writer:always";
    let Some((world, granted)) = hunt(options, None) else { return };
    assert!(granted < 20, "the delegation is kept: {granted}");
    assert!(metric(&world, "comity_directory_notifications_total") > 100);
    world.umount();
}

#[test]
fn listings_follow_programs_on_the_server_within_the_stated_bound_where_only_fanotify_tells() {
    let options = ",dir_delegations=local-late:always";
    let Some((world, granted)) = hunt(options, Some(Duration::from_secs(1))) else { return };
    assert!(granted > 20, "a program's change recalls the delegation: {granted}");
    assert!(metric(&world, "comity_directory_notifications_total") > 50, "other changes do not");
    world.umount();
}

/// Changes a name in the directory as a program on the server does.
fn change_locally(data: &Path, seed: &mut u64, there: &mut BTreeSet<String>) {
    let (name, other) = (format!("n{}", roll(seed, 8)), format!("n{}", roll(seed, 8)));
    if !there.remove(&name) {
        fs::write(data.join(&name), "").unwrap();
        there.insert(name);
    } else if roll(seed, 2) == 0 {
        fs::remove_file(data.join(name)).unwrap();
    } else {
        fs::rename(data.join(name), data.join(&other)).unwrap();
        there.insert(other);
    }
}

/// Returns whether the mount shows these names and no others.
fn shows(dir: &Path, there: &BTreeSet<String>) -> bool {
    let is_right = |name: String| dir.join(&name).exists() == there.contains(&name);
    names(dir) == *there && (0..8).map(|number| format!("n{number}")).all(is_right)
}

/// Clients of all versions, and programs on the server if they have a bound, make random changes in
/// a directory while a mount lists it under a delegation. The mount shows each change at once, and
/// those by programs within the bound. Returns the number of delegations that were granted.
fn hunt(options: &str, programs: Option<Duration>) -> Option<(World, u64)> {
    let world = exporting(options)?;
    world.mount(&world.cached(",acdirmin=0,acdirmax=0"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let data = world.place.data();
    let clients = ["3", "4.0", "4.1", "4.2"].map(|version| stranger(&world, &runtime, version));
    let (mut seed, mut there, mut late) = (7, BTreeSet::new(), Vec::new());
    let granted = calls(&world, "GET_DIR_DELEGATION");
    for step in 0..200 {
        let client = &clients[roll(&mut seed, 4) as usize];
        if programs.is_some() && roll(&mut seed, 3) == 0 {
            change_locally(&data, &mut seed, &mut there);
            let changed = Instant::now();
            wait_until("the mount shows a program's change", || shows(&world.dir, &there));
            late.push(changed.elapsed());
        } else if roll(&mut seed, 4) == 0 {
            let own = format!("own-{step}");
            fs::write(world.dir.join(&own), "").unwrap();
            there.insert(own);
        } else {
            runtime.block_on(change(client.as_ref(), &mut seed, &mut there));
        }
        assert_eq!(names(&data), there, "step {step}");
        for _ in 0..3 {
            assert!(shows(&world.dir, &there), "step {step}: {there:?}");
        }
    }
    late.sort();
    println!("the mount shows changes by programs after {late:?}");
    assert!(late.last() <= programs.as_ref(), "{late:?}");
    let granted = calls(&world, "GET_DIR_DELEGATION") - granted;
    Some((world, granted))
}
