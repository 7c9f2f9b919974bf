//! A Ceph file system, served: `comity serve ceph:/PATH`. Skipped without Ceph.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

#[path = "../../backend/src/ceph/tests/cluster.rs"]
mod cluster;
mod common;

use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cluster::CephCluster;
use comity_proto::nfs4::share;
use common::four::{Four, Opened};
use common::raw::Raw;
use common::{NOBODY, Place, Running, comity, run};
use nfs_rs::Mount;

/// The versions of NFS that the client supports.
const VERSIONS: [&str; 4] = ["3", "4.0", "4.1", "4.2"];

/// Longest time until a restarted server serves a file that the killed one had open. Ceph itself
/// waits a minute for a client that is gone.
const RESTART_MAX: Duration = Duration::from_secs(15);

/// `comity serve` of a directory of the file system.
fn serve(place: &Place, cluster: &CephCluster) -> Command {
    let mut command = place.serve(&["ceph:/open"]);
    command.env("CEPH_CONF", cluster.configuration());
    command
}

/// The same at the port of a server that has ended.
fn again(place: &Place, cluster: &CephCluster, port: u16) -> Running {
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register", "--state-dir"]);
    command.arg(place.state()).args(["--port", &port.to_string(), "ceph:/open"]);
    Running::start(command.env("CEPH_CONF", cluster.configuration()))
}

async fn mount(port: u16, version: &str) -> Box<dyn Mount> {
    let url = format!(
        "nfs://127.0.0.1/open?version={version}&nfsport={port}&mountport={port}&noresvport=true\
         &uid={NOBODY}&gid={NOBODY}"
    );
    nfs_rs::parse_url_and_mount(&url).await.unwrap()
}

/// Runs a client to its end.
fn block_on<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(common::PATIENCE, client).await.unwrap() })
}

/// Makes a directory in which everybody may make files, through a server of its own which lets root
/// be root.
fn make_open(place: &Place, cluster: &CephCluster) {
    let line = format!(
        "/all -ceph=/,ceph_conf={} 127.0.0.1(rw,insecure,no_root_squash)\n",
        cluster.configuration().display()
    );
    let exports = place.write("open.exports", &line);
    let server = Running::start(place.serve(&["--exports"]).arg(exports));
    block_on(async {
        let url = format!(
            "nfs://127.0.0.1/all?version=3&nfsport={0}&mountport={0}&noresvport=true&uid=0&gid=0",
            server.port
        );
        let mount = nfs_rs::parse_url_and_mount(&url).await.unwrap();
        mount.mkdir_path("open", 0o777).await.unwrap();
        mount.umount().await.unwrap();
    });
    assert!(server.stop().success());
}

#[test]
fn a_ceph_file_system_is_served_over_all_versions_and_restarts() {
    let Some(cluster) = CephCluster::start() else {
        return println!("skipped: {}", cluster::NEEDED);
    };
    let place = Place::new();
    make_open(&place, &cluster);
    let server = Running::start(&mut serve(&place, &cluster));
    for version in VERSIONS {
        block_on(change_names(server.port, version));
    }
    assert!(server.stop().success());
    // A server with other state has no clients of NFSv4, for which it would wait after a restart.
    let place = Place::new();
    keep_handles(&place, &cluster);
    recall_for_another_client(&place, &cluster);
    refuse_a_directory_that_is_not_there(&place, &cluster);
}

async fn change_names(port: u16, version: &str) {
    let mount = mount(port, version).await;
    let dir = format!("dir-{version}");
    mount.mkdir_path(&dir, 0o755).await.unwrap();
    let data: Vec<u8> = (0..3_000_003_u32).map(|at| (at % 251) as u8).collect();
    let made = mount.create_path(&format!("{dir}/file"), Some(0o644)).await.unwrap();
    nfs_rs::write_all(&*mount, made.fh.clone(), 0, data.clone().into()).await.unwrap();
    let mut back = Vec::new();
    while back.len() < data.len() {
        back.extend_from_slice(
            &mount.read(made.fh.clone(), back.len() as u64, 300_000).await.unwrap(),
        );
    }
    assert!(back == data, "what came back over {version} differs");
    mount.rename_path(&format!("{dir}/file"), &format!("{dir}/renamed")).await.unwrap();
    mount.symlink_path("renamed", &format!("{dir}/link")).await.unwrap();
    let fh = mount.lookup_path(&dir).await.unwrap().fh;
    let page = mount.readdirplus_page(fh, nfs_rs::DirectoryCookie::default()).await.unwrap();
    let mut names: Vec<_> = page.entries.into_iter().map(|entry| entry.file_name).collect();
    names.retain(|name| name != "." && name != "..");
    names.sort();
    assert_eq!(names, ["link", "renamed"], "over {version}");
    let attr = mount.getattr_path(&format!("{dir}/renamed")).await.unwrap();
    assert_eq!((attr.filesize, attr.uid), (data.len() as u64, NOBODY));
    mount.remove_path(&format!("{dir}/link")).await.unwrap();
    mount.umount().await.unwrap();
}

/// Checks that acknowledged changes and handles outlive a kill of the server.
fn keep_handles(place: &Place, cluster: &CephCluster) {
    let server = Running::start(&mut serve(place, cluster));
    let port = server.port;
    block_on(async {
        let mount = mount(port, "3").await;
        let made = mount.create_path("kept", Some(0o644)).await.unwrap();
        let locked = create_exclusively(port);
        nfs_rs::write_all(&*mount, made.fh.clone(), 0, b"before".to_vec().into()).await.unwrap();
        server.kill();
        let begun = Instant::now();
        let server = again(place, cluster, port);
        let read = mount.read(made.fh.clone(), 0, 100).await.unwrap();
        assert_eq!(&read[..], b"before", "the handle and the data outlive the crash");
        assert_eq!(create_exclusively(port), locked, "a retry is the same file");
        nfs_rs::write_all(&*mount, made.fh.clone(), 6, b" after".to_vec().into()).await.unwrap();
        assert!(begun.elapsed() < RESTART_MAX, "Ceph waited for the killed server");
        mount.rename_path("kept", "moved").await.unwrap();
        mount.umount().await.unwrap();
        assert!(server.stop().success());
    });
    let server = again(place, cluster, port);
    let mut client = Raw::connect(server.port, NOBODY);
    let top = client.mount(Path::new("/open")).unwrap();
    let file = client.lookup(&top, b"moved").unwrap();
    assert_eq!(client.read(&file), Ok(b"before after".to_vec()));
}

/// Makes a file, or finds that an earlier call has made it.
fn create_exclusively(port: u16) -> Vec<u8> {
    let mut client = Raw::connect(port, NOBODY);
    let top = client.mount(Path::new("/open")).unwrap();
    client.create(&top, "lock", [1, 2, 3, 4, 5, 6, 7, 8]).unwrap()
}

/// A client of the first of two servers, which both serve the cluster.
struct Holder {
    server: Running,
    other: Running,
    client: Four,
}

impl Holder {
    /// Makes a file, which the client opens for reading.
    fn open(&mut self, name: &str) -> (Vec<u8>, Opened) {
        let mut maker = Raw::connect(self.server.port, NOBODY);
        let top = maker.mount(Path::new("/open")).unwrap();
        let handle = maker.create(&top, name, *b"verifier").unwrap();
        maker.setattr(&handle, (None, Some(3))).unwrap();
        (handle, self.client.open(&Path::new("/open").join(name), share::READ).unwrap())
    }

    /// Cuts the file through the other server in a thread, as another client of Ceph.
    fn cut(&self, name: &str) -> JoinHandle<()> {
        let (port, name) = (self.other.port, name.to_owned());
        std::thread::spawn(move || {
            let mut writer = Raw::connect(port, NOBODY);
            let top = writer.mount(Path::new("/open")).unwrap();
            let file = writer.lookup(&top, name.as_bytes()).unwrap();
            writer.setattr(&file, (None, Some(1))).unwrap();
        })
    }

    /// The data of a file, by the first server.
    fn read(&self, handle: &[u8]) -> Vec<u8> {
        Raw::connect(self.server.port, NOBODY).read(handle).unwrap()
    }
}

/// Checks that another client of Ceph waits until a delegation has been returned or revoked.
fn recall_for_another_client(place: &Place, cluster: &CephCluster) {
    // The shortest time for which Ceph waits for a client.
    let evicted_after = Duration::from_secs(30);
    cluster.command(&["fs", "set", "cephfs", "session_autoclose", "30"]);
    let server = Running::start(&mut serve(place, cluster));
    let other_place = Place::new();
    let other = Running::start(&mut serve(&other_place, cluster));
    let client = Four::connect(server.port, NOBODY, "client");
    let mut holder = Holder { server, other, client };
    assert!(holder.client.bind().is_ok(), "the server can call the client back");

    let (handle, file) = holder.open("returned");
    let delegation = file.delegation.unwrap();
    let writer = holder.cut("returned");
    assert!(holder.client.listen(common::PATIENCE, |client| client.recalled == [delegation]));
    assert!(!writer.is_finished(), "the other client does not wait");
    holder.client.give_back(&file, delegation).unwrap();
    writer.join().unwrap();
    assert_eq!(holder.read(&handle), [0]);

    let (handle, file) = holder.open("kept");
    assert!(file.delegation.is_some());
    let (begun, writer) = (Instant::now(), holder.cut("kept"));
    writer.join().unwrap();
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(5) && waited < evicted_after, "{waited:?}");
    assert_eq!(holder.read(&handle), [0], "Ceph still serves the server");

    // Ceph would block its writes after a snapshot.
    let file = holder.client.open(Path::new("/open/written"), share::BOTH).unwrap();
    assert!(file.delegation.is_none());
}

fn refuse_a_directory_that_is_not_there(place: &Place, cluster: &CephCluster) {
    let mut command = place.serve(&["--check", "ceph:/none"]);
    let said = run(command.env("CEPH_CONF", cluster.configuration()));
    assert_eq!(said.code, Some(1), "{} {}", said.out, said.err);
    let told = said.out + &said.err;
    assert!(told.contains("libcephfs cannot mount the file system: No such file"), "{told}");
}
