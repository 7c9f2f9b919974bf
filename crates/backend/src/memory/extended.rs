use comity_vfs::limits::XATTR_BYTES_MAX;
use comity_vfs::permission::{Permissions, mode_after_chmod};
use comity_vfs::{
    Acl, AclKind, Attr, Change, Cred, Disk, FileType, Handle, Name, Result, Status, XattrMode,
};

use super::Memory;
use super::attributes::attr_of_living;
use super::limits::ENTRY_BYTES;
use super::node::{Body, State};
use super::space::Charge;

/// Bytes of an ACL's entry in an extended attribute on Linux.
const ACL_ENTRY_BYTES: u64 = 8;

pub(super) fn getacl(memory: &Memory, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
    let node = memory.table.find(node)?;
    let state = node.read();
    attr_of_living(&state)?;
    has_acls(&state)?;
    Ok(match kind {
        AclKind::Access => state.acl.clone(),
        AclKind::Default => state.default_acl.clone(),
    })
}

pub(super) fn setacl(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    kind: AclKind,
    acl: Option<&Acl<Disk>>,
) -> Result<Change<Disk>> {
    let node = memory.table.find(node)?;
    let mut state = node.write();
    let before = attr_of_living(&state)?;
    has_acls(&state)?;
    acl.map_or(Ok(()), Acl::check)?;
    if kind == AclKind::Default && !state.is_directory() {
        return Err(Status::Inval);
    }
    state.object(&before).check_owner(cred)?;
    match kind {
        AclKind::Access => set_access(&mut state, cred, acl)?,
        AclKind::Default => set_default(&mut state, acl)?,
    }
    state.touch(memory.now());
    Ok(Change { before: Some(before), after: Some(state.attr()) })
}

/// Returns the space that is charged for an ACL.
pub(super) fn acl_bytes(acl: Option<&Acl<Disk>>) -> u64 {
    acl.map_or(0, |acl| acl.entries.len() as u64 * ACL_ENTRY_BYTES)
}

pub(super) fn getxattr(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    name: Name<'_>,
) -> Result<Vec<u8>> {
    let node = memory.table.find(node)?;
    let state = node.read();
    check_xattrs(&state, cred, Permissions::READ)?;
    state.xattrs.get(name.bytes()).cloned().ok_or(Status::NoXattr)
}

pub(super) fn setxattr(
    memory: &Memory,
    cred: &Cred<Disk>,
    (node, name): (&Handle, Name<'_>),
    value: Option<&[u8]>,
    mode: XattrMode,
) -> Result<Change<Disk>> {
    let node = memory.table.find(node)?;
    let mut state = node.write();
    let before = check_xattrs(&state, cred, Permissions::WRITE)?;
    if value.is_some_and(|value| value.len() > XATTR_BYTES_MAX) {
        return Err(Status::XattrTooBig);
    }
    match (state.xattrs.contains_key(name.bytes()), mode) {
        (true, XattrMode::Create) => return Err(Status::Exist),
        (false, XattrMode::Replace) => return Err(Status::NoXattr),
        (false, _) if value.is_none() => return Err(Status::NoXattr),
        _ => replace_xattr(&mut state, name, value)?,
    }
    state.touch(memory.now());
    Ok(Change { before: Some(before), after: Some(state.attr()) })
}

pub(super) fn listxattr(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
) -> Result<Vec<Box<[u8]>>> {
    let node = memory.table.find(node)?;
    let state = node.read();
    check_xattrs(&state, cred, Permissions::READ)?;
    Ok(state.xattrs.keys().cloned().collect())
}

fn set_access(state: &mut State, cred: &Cred<Disk>, acl: Option<&Acl<Disk>>) -> Result<()> {
    let stored = acl.filter(|acl| !acl.is_minimal());
    recharge(&mut state.charge, acl_bytes(state.acl.as_ref()), acl_bytes(stored))?;
    if let Some(acl) = acl {
        state.meta.mode = mode_after_chmod(cred, state.meta.gid, acl.mode(state.meta.mode));
    }
    state.acl = stored.cloned();
    Ok(())
}

fn set_default(state: &mut State, acl: Option<&Acl<Disk>>) -> Result<()> {
    recharge(&mut state.charge, acl_bytes(state.default_acl.as_ref()), acl_bytes(acl))?;
    state.default_acl = acl.cloned();
    Ok(())
}

fn has_acls(state: &State) -> Result<()> {
    if matches!(state.body, Body::Symlink(_)) { Err(Status::NotSupp) } else { Ok(()) }
}

/// User attributes are for files and directories, as on Linux: permission bits of other objects
/// have another meaning.
fn check_xattrs(state: &State, cred: &Cred<Disk>, wanted: Permissions) -> Result<Attr<Disk>> {
    let attr = attr_of_living(state)?;
    match attr.file_type {
        FileType::Regular | FileType::Directory => state.object(&attr).check(cred, wanted)?,
        _ if wanted == Permissions::WRITE => return Err(Status::Perm),
        _ => {}
    }
    Ok(attr)
}

fn replace_xattr(state: &mut State, name: Name<'_>, value: Option<&[u8]>) -> Result<()> {
    let bytes = |length| ENTRY_BYTES + name.bytes().len() as u64 + length as u64;
    let old = state.xattrs.get(name.bytes()).map_or(0, |value| bytes(value.len()));
    recharge(&mut state.charge, old, value.map_or(0, |value| bytes(value.len())))?;
    match value {
        Some(value) => {
            state.xattrs.insert(name.bytes().into(), value.to_vec());
        }
        None => {
            state.xattrs.remove(name.bytes());
        }
    }
    Ok(())
}

fn recharge(charge: &mut Charge, old: u64, new: u64) -> Result<()> {
    charge.grow(new.saturating_sub(old))?;
    charge.shrink(old.saturating_sub(new));
    Ok(())
}
