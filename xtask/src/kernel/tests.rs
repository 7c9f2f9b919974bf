//! The tests: a script for the guests, its input, and the state that the disk must have afterwards.

mod bench;
mod bench_client;
mod build;
mod clients;
mod copies;
mod directories;
mod durable;
mod fsx;
mod git;
mod grants;
mod heads;
mod hosts;
mod migrate;
mod mirrors;
mod placement;
mod programs;
mod refer;
mod scarce;
mod sites;
mod smoke;
mod sqlite;
mod tar;
mod tls;
mod tour_migrate;
mod tour_page;
mod tour_pnfs;
mod two;

use anyhow::Result;

use super::data_servers::DataServerKind;
use super::ground::Ground;
use super::kernels::Kernel;

/// Python module with which two guests wait for each other.
const MEETING: &str = include_str!("tests/meeting.py");

/// Python modules with which one guest directs others.
const STAGE: &[(&str, &str)] = &[
    ("stage.py", include_str!("tests/stage.py")),
    ("hands.py", include_str!("tests/hands.py")),
    ("locking.py", include_str!("tests/locking.py")),
];

/// Python module with the outcomes of a call whose server was killed.
const RETRIES: &str = include_str!("tests/retries.py");

/// Exports of a directory of a Ceph file system.
const ON_CEPH: &[&str] =
    &["TOP -ceph=/export,ceph_conf=CEPH 10.77.0.0/24(rw,sync,no_root_squash)\n"];

/// A test with a kernel client.
#[derive(Clone, Copy)]
pub(super) struct Test {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// One line about its purpose.
    pub(super) about: &'static str,
    /// The script that each guest runs with `sh`; `$NUMBER` is the number of the guest.
    pub(super) script: &'static str,
    /// The version of NFS that the guests mount.
    pub(super) version: &'static str,
    /// The kernel that the test needs; `None` if it runs on any.
    pub(super) kernel: Option<Kernel>,
    /// False if not all connections of the test can be secured by TLS: it sets itself which are, or
    /// it uses locks of NFSv3, for which Linux has no TLS.
    pub(super) takes_tls: bool,
    /// Number of guests that run the script at the same time.
    pub(super) guests: u8,
    /// Highest number of times that the server is killed.
    pub(super) kills: u32,
    /// The configurations of the exports, which are loaded one after the other as the first guest
    /// asks for them. `TOP` stands for the exported folder, `CEPH` for the configuration of the
    /// cluster and `{NAME}` for the public key of that name.
    pub(super) exports: &'static [&'static str],
    /// More arguments of `comity serve`; `INPUT` stands for the input folder of the guests.
    pub(super) arguments: &'static [&'static str],
    /// Number of data servers with the data of the exported folder; if there are any, `exports` is
    /// not used.
    pub(super) data_servers: u16,
    /// The kind of these data servers.
    pub(super) data_server_kind: DataServerKind,
    /// Number of hosts on which the first guest can start more data servers; if there are any,
    /// `exports` is not used.
    pub(super) idle_hosts: u16,
    /// True if there is another server, to which the exports can be moved; `exports` is not used
    /// then.
    pub(super) has_other_server: bool,
    /// True if the exported files are in a Ceph file system, from which they are copied to the
    /// exported folder when the guests have ended.
    pub(super) on_ceph: bool,
    /// Longest time of the whole test, in seconds, on a slow machine.
    pub(super) seconds_max: u64,
    /// Writes the files of the input folder.
    pub(super) prepare: fn(&Ground) -> Result<()>,
    /// Compares the exported folder with the expected result.
    pub(super) verify: fn(&Ground) -> Result<()>,
}

impl Test {
    /// A test of one guest that does nothing.
    pub(super) const EMPTY: Self = Self {
        name: "",
        about: "",
        script: "",
        version: "3",
        kernel: None,
        takes_tls: true,
        guests: 1,
        kills: 0,
        exports: &["TOP 10.77.0.0/24(rw,sync,no_root_squash)\n"],
        arguments: &["--no-register"],
        data_servers: 0,
        data_server_kind: DataServerKind::Stripes,
        idle_hosts: 0,
        has_other_server: false,
        on_ceph: false,
        seconds_max: 300,
        prepare: |_| Ok(()),
        verify: |_| Ok(()),
    };

    /// Returns whether `cargo xtask test` runs the test.
    pub(super) fn is_core(&self) -> bool {
        CORE.contains(&self.name)
    }

    /// A copy of the test for another version of NFS.
    const fn over(self, name: &'static str, version: &'static str) -> Self {
        Self { name, about: "the same over NFSv4", version, ..self }
    }

    /// A copy of the test for another kernel.
    const fn on(self, name: &'static str, kernel: Kernel) -> Self {
        Self { name, about: "the same on a newer kernel", kernel: Some(kernel), ..self }
    }

    /// A copy of the test on a Ceph file system.
    const fn on_ceph(self, name: &'static str) -> Self {
        let (about, exports) = ("the same over NFSv4.2 on a Ceph file system", ON_CEPH);
        Self { name, about, version: "4.2", on_ceph: true, exports, ..self }
    }

    /// A copy of the test whose server is killed.
    const fn killed(self, name: &'static str, kills: u32) -> Self {
        Self { name, about: "the same, the server killed again and again", kills, ..self }
    }
}

/// The tests that `cargo xtask test` runs: each workload at least once, and each version of NFS and
/// each kind of failure with several workloads. The others, which repeat a workload over another
/// version, are in `cargo xtask soak`.
const CORE: &[&str] = &[
    "bench",
    "build-short",
    "clients-4.0",
    "clients-4.1",
    "copies",
    "directories-7.2",
    "fsx-short-4.2",
    "fsx-kill",
    "fsx-short-nconnect",
    "fsync-kill",
    "git-4.1",
    "grants-6.12",
    "heads",
    "heads-hosts",
    "hosts",
    "migrate",
    "migrate-both",
    "mirrors",
    "mirrors-6.12",
    "mtls-6.12",
    "mtls-two-6.12",
    "placement",
    "placement-6.12",
    "programs-7.2",
    "refer",
    "scarce-4.1",
    "sites",
    "sites-4.1",
    "smoke",
    "smoke-4.0",
    "smoke-4.1",
    "smoke-4.2",
    "smoke-6.12",
    "smoke-7.2",
    "smoke-ceph",
    "smoke-kill",
    "smoke-kill-4.1",
    "sqlite-4.0",
    "sqlite-kill",
    "tar-4.2",
    "tour-migrate",
    "tour-pnfs",
    "tls-6.12",
    "tls-kill-6.12",
    "tls-made-6.12",
    "tls-refused-6.12",
    "tls-renewed-6.12",
    "two",
    "two-kill",
];

/// All tests, beginning with the longest, so that two at a time end at about the same time.
pub(super) const ALL: &[Test] = &[
    build::TEST,
    bench_client::TEST,
    build::SHORT,
    build::TEST.killed("build-kill", 6),
    tar::TEST,
    tar::TEST.killed("tar-kill", 6),
    git::TEST,
    git::TEST.killed("git-kill", 6),
    fsx::TEST,
    fsx::KILLED,
    sqlite::TEST,
    sqlite::TEST.killed("sqlite-kill", 6),
    smoke::TEST.killed("smoke-kill", 6),
    two::TEST.killed("two-kill", 6),
    sites::TEST,
    bench::TEST,
    smoke::TEST,
    durable::TEST,
    two::TEST,
    build::TEST.over("build-4.0", "4.0"),
    build::TEST.over("build-4.1", "4.1"),
    build::TEST.over("build-4.2", "4.2"),
    tar::TEST.over("tar-4.0", "4.0"),
    tar::TEST.over("tar-4.1", "4.1"),
    tar::TEST.over("tar-4.2", "4.2"),
    git::TEST.over("git-4.0", "4.0"),
    git::TEST.over("git-4.1", "4.1"),
    git::TEST.over("git-4.2", "4.2"),
    fsx::TEST.over("fsx-4.0", "4.0"),
    fsx::TEST.over("fsx-4.1", "4.1"),
    fsx::TEST.over("fsx-4.2", "4.2"),
    fsx::SHORT.over("fsx-short-4.2", "4.2"),
    fsx::MIRRORS,
    sqlite::TEST.over("sqlite-4.0", "4.0"),
    sqlite::TEST.over("sqlite-4.1", "4.1"),
    sqlite::TEST.over("sqlite-4.2", "4.2"),
    sites::TEST.over("sites-4.1", "4.1"),
    smoke::TEST.over("smoke-4.0", "4.0"),
    smoke::TEST.over("smoke-4.1", "4.1"),
    smoke::TEST.over("smoke-4.2", "4.2"),
    smoke::TEST.over("", "4.2").on("smoke-6.12", Kernel::Linux6_12),
    smoke::TEST.over("", "4.2").on("smoke-7.2", Kernel::Linux7_2),
    smoke::TEST.on_ceph("smoke-ceph"),
    smoke::TEST.on_ceph("").killed("smoke-kill-ceph", 6),
    fsx::SHORT.on_ceph("fsx-short-ceph"),
    git::TEST.on_ceph("git-ceph"),
    refer::TEST,
    migrate::TEST,
    migrate::TEST.over("migrate-4.2", "4.2"),
    migrate::BOTH,
    migrate::HOSTS,
    tour_migrate::TEST,
    heads::TEST,
    heads::HOSTS,
    heads::TEST.on("heads-6.12", Kernel::Linux6_12),
    tour_pnfs::TEST,
    migrate::BOTH.over("", "4.2").on("migrate-both-6.12", Kernel::Linux6_12),
    migrate::BOTH.over("", "4.2").on("migrate-both-7.2", Kernel::Linux7_2),
    migrate::TEST.over("", "4.2").on("migrate-6.12", Kernel::Linux6_12),
    migrate::TEST.over("", "4.2").on("migrate-7.2", Kernel::Linux7_2),
    placement::TEST,
    placement::TEST.over("", "4.2").on("placement-6.12", Kernel::Linux6_12),
    mirrors::TEST,
    mirrors::GANESHA,
    mirrors::TEST.over("", "4.2").on("mirrors-6.12", Kernel::Linux6_12),
    smoke::TEST.over("", "4.1").killed("smoke-kill-4.1", 6),
    build::TEST.over("", "4.1").killed("build-kill-4.1", 6),
    tar::TEST.over("", "4.1").killed("tar-kill-4.1", 6),
    fsx::TEST.over("fsx-nconnect", "4.1,nconnect=4"),
    fsx::SHORT.over("fsx-short-nconnect", "4.1,nconnect=4"),
    clients::TEST.over("clients-4.0", "4.0"),
    clients::TEST,
    clients::TEST.over("clients-4.2", "4.2"),
    copies::TEST,
    scarce::TEST,
    scarce::TEST.over("scarce-4.2", "4.2"),
    hosts::TEST,
    hosts::TEST.on("hosts-6.12", Kernel::Linux6_12),
    clients::TEST.over("", "4.2").on("clients-7.2", Kernel::Linux7_2),
    directories::TEST,
    programs::TEST,
    tls::ALL[0],
    tls::ALL[1],
    tls::ALL[2],
    tls::ALL[3],
    tls::ALL[4],
    tls::ALL[5],
    tls::ALL[6],
    grants::ALL[0],
    tls::ALL[7],
];

#[cfg(test)]
mod tests_of_the_list {
    use super::*;

    #[test]
    fn the_core_is_a_part_of_the_list_and_has_every_workload() {
        for name in CORE {
            assert!(ALL.iter().any(|test| test.name == *name), "{name}");
        }
        let workload = |name: &'static str| name.split('-').next().unwrap_or(name);
        for test in ALL {
            let is_there = CORE.iter().any(|name| workload(name) == workload(test.name));
            assert!(is_there, "no test of the core does what {} does", test.name);
        }
    }
}
