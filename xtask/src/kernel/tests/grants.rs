//! Rights held by a key: an ordinary client can use the files that were granted to the key of its
//! host, and no others, until the grant is revoked.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;
use crate::kernel::kernels::Kernel;
use crate::kernel::keys::{Keys, NewKey};
use crate::kernel::server::KEY_ARGUMENTS;

use super::Test;

/// The user who grants; it exists on every Debian.
const USER: (&str, u32) = ("daemon", 1);

/// All tests of this kind.
pub(super) const ALL: [Test; 1] = [GRANTS];

const GRANTS: Test = Test {
    name: "grants-6.12",
    about: "a host uses files granted to its key, hands the rights on, and loses them again",
    version: "4.2,xprtsec=mtls",
    kernel: Some(Kernel::Linux6_12),
    takes_tls: false,
    guests: 1,
    script: include_str!("grants/grants.sh"),
    exports: &["TOP 10.77.0.0/24(rw,sync,sec=key,xprtsec=mtls)\n"],
    arguments: &[
        "--no-register",
        KEY_ARGUMENTS[0],
        KEY_ARGUMENTS[1],
        KEY_ARGUMENTS[2],
        KEY_ARGUMENTS[3],
        "--accounts",
        "INPUT/accounts",
    ],
    prepare,
    verify,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    let keys = Keys::of(ground)?;
    keys.make(&NewKey::server("server"))?;
    keys.make(&NewKey::client("alice"))?;
    keys.equip(&NewKey::client("bob"), &["server"])?;
    keys.equip(&NewKey::client("carol"), &["server"])?;
    let accounts = format!("user=\"{}\" {}\n", USER.0, keys.public_key("alice")?);
    fs::write(ground.input().join("accounts"), accounts)?;
    for (folder, file) in [("p/report", "text"), ("p/private", "diary"), ("secret", "plan")] {
        let folder = ground.export().join(folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(file), format!("the {file}\n"))?;
        for path in [folder.clone(), folder.join(file)] {
            chown(&path, Some(USER.1), Some(USER.1))?;
        }
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    chown(ground.export().join("p"), Some(USER.1), Some(USER.1))?;
    Ok(())
}

/// Checks that the file that the key made belongs to the user who granted.
fn verify(ground: &Ground) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let made = ground.export().join("p/report/from-bob");
    ensure!(fs::read(&made)? == b"from bob\n", "the file that the key made holds other data");
    ensure!(fs::metadata(&made)?.uid() == USER.1, "the file that the key made has another owner");
    Ok(())
}
