//! RPC-with-TLS (RFC 9289) by Linux clients, whose handshakes tlshd makes.

mod kill;
mod refused;
mod renewed;

use std::fs;

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;
use crate::kernel::kernels::Kernel;
use crate::kernel::keys::{Keys, NewKey};
use crate::kernel::server::KEY_ARGUMENTS;

use super::Test;

/// Arguments of a server with the key `server` of the test, whose log contains the clients' keys.
const SERVER: &[&str] = &[
    "--no-register",
    KEY_ARGUMENTS[0],
    KEY_ARGUMENTS[1],
    KEY_ARGUMENTS[2],
    KEY_ARGUMENTS[3],
    "--log",
    "info,comity_server=debug",
];

/// All tests of this kind.
pub(super) const ALL: [Test; 8] = [
    ONE_SIDED,
    SELF_MADE,
    BOTH_SIDED,
    BOTH_SIDED.on("mtls-7.2", Kernel::Linux7_2),
    TWO_HOSTS,
    refused::TEST,
    renewed::TEST,
    kill::TEST,
];

const ONE_SIDED: Test = Test {
    name: "tls-6.12",
    about: "a host without a key mounts by xprtsec=tls, writes, and reads it back",
    version: "4.2,xprtsec=tls",
    kernel: Some(Kernel::Linux6_12),
    takes_tls: false,
    script: include_str!("data.sh"),
    exports: &["TOP 10.77.0.0/24(rw,sync,no_root_squash,xprtsec=tls)\n"],
    arguments: SERVER,
    prepare: |ground| {
        let keys = Keys::of(ground)?;
        keys.make(&NewKey::server("server"))?;
        keys.equip_without_key("host-1", &["server"])
    },
    verify: |ground| has_data(ground, 1),
    ..Test::EMPTY
};

const SELF_MADE: Test = Test {
    name: "tls-made-6.12",
    about: "the same with the key that the server makes itself, mounted by address",
    script: include_str!("made.sh"),
    arguments: &["--no-register"],
    prepare: |ground| Keys::of(ground)?.equip_without_key("host-1", &[]),
    ..ONE_SIDED
};

const BOTH_SIDED: Test = Test {
    name: "mtls-6.12",
    about: "a host with a key mounts by xprtsec=mtls what is exported to that key",
    version: "4.2,xprtsec=mtls",
    exports: &["TOP key={host-1}(rw,sync,no_root_squash,xprtsec=mtls)\n"],
    prepare: |ground| equip(ground, 1),
    verify: |ground| {
        has_data(ground, 1)?;
        names_keys(ground, &["host-1"])
    },
    ..ONE_SIDED
};

const TWO_HOSTS: Test = Test {
    name: "mtls-two-6.12",
    about: "two hosts with two keys, one of P-256: each has its own export, and not the other's",
    guests: 2,
    script: include_str!("two.sh"),
    exports: &["TOP/1 key={host-1}(rw,sync,no_root_squash,xprtsec=mtls)\n\
                TOP/2 key={host-2}(rw,sync,no_root_squash,xprtsec=mtls)\n"],
    prepare: |ground| {
        fs::create_dir(ground.export().join("1"))?;
        fs::create_dir(ground.export().join("2"))?;
        equip(ground, 2)
    },
    verify: |ground| {
        has_data(ground, 2)?;
        names_keys(ground, &["host-1", "host-2"])
    },
    ..BOTH_SIDED
};

/// Makes the server's key and those of `hosts`; the second host gets one of P-256.
fn equip(ground: &Ground, hosts: u8) -> Result<()> {
    let keys = Keys::of(ground)?;
    keys.make(&NewKey::server("server"))?;
    keys.equip(&NewKey::client("host-1"), &["server"])?;
    if hosts > 1 {
        keys.equip(&NewKey::client("host-2").with_p256(), &["server"])?;
    }
    Ok(())
}

/// Checks that the disk has the data of each guest, in a folder with its number.
fn has_data(ground: &Ground, guests: u8) -> Result<()> {
    for number in 1..=guests {
        let sent = fs::read(ground.guest(number).join("data"))?;
        let folder =
            if guests == 1 { ground.export() } else { ground.export().join(number.to_string()) };
        ensure!(
            !sent.is_empty() && sent == fs::read(folder.join("data"))?,
            "guest {number} has sent other data"
        );
    }
    Ok(())
}

/// Checks that the server's log contains the keys of these hosts.
fn names_keys(ground: &Ground, hosts: &[&str]) -> Result<()> {
    let (log, keys) = (ground.server_log()?, Keys::of(ground)?);
    for host in hosts {
        let key = keys.public_key(host)?.to_string();
        ensure!(log.contains(&key), "the server's log does not name {key}, the key of {host}");
    }
    Ok(())
}
