//! The options of exports whose files are in a Ceph file system.

use std::ffi::OsStr;

use super::table::Draft;
use crate::path::normal;

/// `ceph=`
pub(super) fn ceph(draft: &mut Draft, value: &str) -> Result<(), String> {
    let path = normal(OsStr::new(value))?;
    draft.terms.settings.ceph.path = Some(path);
    Ok(())
}

/// `ceph_conf=`
pub(super) fn ceph_conf(draft: &mut Draft, value: &str) -> Result<(), String> {
    let path = normal(OsStr::new(value))?;
    draft.terms.settings.ceph.configuration = Some(path);
    Ok(())
}

/// `ceph_id=`
pub(super) fn ceph_id(draft: &mut Draft, value: &str) -> Result<(), String> {
    draft.terms.settings.ceph.id = Some(ceph_name(value)?);
    Ok(())
}

/// `ceph_fs=`
pub(super) fn ceph_fs(draft: &mut Draft, value: &str) -> Result<(), String> {
    draft.terms.settings.ceph.file_system = Some(ceph_name(value)?);
    Ok(())
}

/// Checks a name that Ceph gives a user or a file system.
fn ceph_name(value: &str) -> Result<Box<str>, String> {
    let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !value.is_empty() && value.bytes().all(is_named) {
        true => Ok(value.into()),
        false => Err(format!("{value:?} is no name in Ceph: letters, digits, `-`, `_` and `.`")),
    }
}
