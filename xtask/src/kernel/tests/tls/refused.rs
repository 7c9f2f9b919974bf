//! Hosts that are refused, and the reasons in the server's log.

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;
use crate::kernel::keys::{Keys, NewKey};
use crate::kernel::tests::Test;

pub(super) const TEST: Test = Test {
    name: "tls-refused-6.12",
    about: "mounts without TLS, without a key, with a wrong key or an expired certificate fail",
    version: "4.2",
    script: include_str!("refused.sh"),
    exports: &["TOP/any 10.77.0.0/24(rw,sync,no_root_squash,xprtsec=mtls)\n\
                TOP/own key={good}(rw,sync,no_root_squash,xprtsec=mtls)\n"],
    prepare,
    verify,
    ..super::BOTH_SIDED
};

fn prepare(ground: &Ground) -> Result<()> {
    for folder in ["any", "own"] {
        std::fs::create_dir(ground.export().join(folder))?;
    }
    let keys = Keys::of(ground)?;
    keys.make(&NewKey::server("server"))?;
    keys.make(&NewKey::server("other-server"))?;
    keys.make(&NewKey::server("elsewhere").of_hosts(&["elsewhere"]))?;
    keys.equip(&NewKey::client("good"), &["server", "elsewhere"])?;
    keys.equip(&NewKey::client("stranger"), &["server"])?;
    keys.equip(&NewKey::client("misled"), &["other-server"])?;
    keys.equip(&NewKey::client("expired").expired(), &["server"])?;
    keys.equip_without_key("bare", &["server"])
}

/// Checks that the logs of the server and of the host contain the reasons.
fn verify(ground: &Ground) -> Result<()> {
    let (log, stranger) = (ground.server_log()?, Keys::of(ground)?.public_key("stranger")?);
    for reason in ["the peer's certificate has expired", &stranger.to_string()] {
        ensure!(log.contains(reason), "the server's log does not say `{reason}`");
    }
    let log = ground.written("tlshd.log")?;
    for reason in ["issuer is unknown", "trusted. The name in the certificate does not match"] {
        ensure!(log.contains(reason), "the log of tlshd does not say `{reason}`");
    }
    Ok(())
}
