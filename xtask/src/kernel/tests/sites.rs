//! Two sites whose users have the same ids: maps, cloaks, and clients with many users.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "sites",
    about: "two sites with the same numbers: maps, cloaks loaded during the test, shared caches",
    script: include_str!("sites.sh"),
    guests: 2,
    exports: &[MAPPED, CLOAKED, MAPPED],
    prepare,
    verify,
    ..Test::EMPTY
};

/// One line of an exports file, in which each guest is a site.
macro_rules! export {
    ($path:literal, $options:literal) => {
        concat!(
            "TOP/",
            $path,
            " 10.77.0.11(rw,range_map_uid=1000-1999:101000-101999,\
             range_map_gid=1000-1999:101000-101999,range_map_gid=100:100100",
            $options,
            ") 10.77.0.12(rw,range_map_uid=1000-1999:102000-102999,\
             range_map_gid=1000-1999:102000-102999,range_map_gid=100:100100",
            $options,
            ")\n"
        )
    };
}

/// Root is not squashed in `admin` and is mapped: only the map prevents it from setting any owner.
const MAPPED: &str = concat!(
    export!("guarded", ""),
    export!("cached", ""),
    export!("admin", ",no_root_squash,range_map_uid=0:0,range_map_gid=0:0")
);

const CLOAKED: &str = concat!(
    export!("guarded", ",cloak_uid=101000-102999:+070,no_client_cache"),
    export!("cached", ",cloak_uid=101000-102999:+070"),
    export!("admin", ",no_root_squash,range_map_uid=0:0,range_map_gid=0:0")
);

/// Number of files of each site in a directory whose listing takes many replies.
const MANY: u32 = 1500;

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("sites.py", include_str!("sites.py")), ("meeting.py", super::MEETING)])?;
    for folder in ["guarded/files", "cached/files", "guarded/many", "admin"] {
        fs::create_dir_all(ground.export().join(folder))?;
    }
    for folder in ["guarded/files", "cached/files"] {
        fs::set_permissions(ground.export().join(folder), Permissions::from_mode(0o1777))?;
    }
    for site in [1, 2] {
        for number in 0..MANY {
            let file = ground.export().join(format!("guarded/many/{number:04}-{site}"));
            fs::write(&file, "")?;
            chown(file, Some(id(site, 1000)), Some(id(site, 1000)))?;
        }
    }
    Ok(())
}

/// The id on the server of a user or group of a site.
const fn id(site: u32, number: u32) -> u32 {
    100_000 + site * 1000 + (number - 1000)
}

/// Checks that files of the two users with id 1000 belong to different users on the server.
fn verify(ground: &Ground) -> Result<()> {
    for site in [1, 2] {
        for top in ["guarded/files", "cached/files"] {
            let file = |name: &str| ground.export().join(top).join(format!("{name}-{site}"));
            let (owner, stranger) = (id(site, 1000), id(site, 1001));
            is_owned(&file("report"), (owner, owner))?;
            is_owned(&file("diary"), (owner, owner))?;
            is_owned(&file("folder").join(format!("inside-{site}")), (owner, owner))?;
            is_owned(&file("plan"), (owner, 100_100))?;
            is_owned(&file("stranger"), (stranger, stranger))?;
        }
        let given = ground.export().join(format!("admin/given-{site}"));
        is_owned(&given, (id(site, 1500), id(site, 1999)))?;
    }
    Ok(())
}

fn is_owned(file: &Path, ids: (u32, u32)) -> Result<()> {
    let found = fs::symlink_metadata(file).with_context(|| file.display().to_string())?;
    let found = (found.uid(), found.gid());
    ensure!(found == ids, "{} belongs to {found:?} here, not {ids:?}", file.display());
    Ok(())
}
