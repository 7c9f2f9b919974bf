use comity_vfs::permission::{mode_after_chmod, mode_after_chown, mode_after_write};
use comity_vfs::{
    Access, Attr, Change, Cred, Disk, FileType, Handle, Mode, Result, SetAttr, SetTime, Status,
    Time,
};

use super::Memory;
use super::node::{Node, State};

/// Age in seconds at which a read renews an access time: that of Linux (`relatime`).
const ATIME_AGE_SECONDS: i64 = 24 * 60 * 60;

const NANOSECONDS: u32 = 1_000_000_000;

pub(super) fn getattr(memory: &Memory, node: &Handle) -> Result<Attr<Disk>> {
    let node = memory.table.find(node)?;
    let state = node.read();
    attr_of_living(&state)
}

pub(super) fn setattr(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    set: &SetAttr<Disk>,
    guard: Option<Time>,
) -> Result<Change<Disk>> {
    let node = memory.table.find(node)?;
    let mut state = node.write();
    let before = attr_of_living(&state)?;
    if guard.is_some_and(|time| time != before.ctime) {
        return Err(Status::NotSync);
    }
    check_values(memory, &state, set)?;
    if set.mode.is_some() && before.file_type == FileType::Symlink {
        return Err(Status::NotSupp);
    }
    state.object(&before).check_setattr(cred, set)?;
    if !set.is_empty() {
        apply(&mut state, cred, set, memory.now())?;
    }
    Ok(Change { before: Some(before), after: Some(state.attr()) })
}

pub(super) fn access(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    wanted: Access,
) -> Result<(Access, Attr<Disk>)> {
    let node = memory.table.find(node)?;
    let state = node.read();
    let attr = attr_of_living(&state)?;
    Ok((state.object(&attr).access(cred, wanted), attr))
}

/// Returns the attributes of an object, unless it lost its last name after it was found.
pub(super) fn attr_of_living(state: &State) -> Result<Attr<Disk>> {
    if state.is_removed() { Err(Status::Stale) } else { Ok(state.attr()) }
}

/// Checks whether values are valid for the object: only files have a length, and times have
/// nanoseconds below one second.
pub(super) fn check_values(memory: &Memory, state: &State, set: &SetAttr<Disk>) -> Result<()> {
    if let Some(size) = set.size {
        state.content()?;
        if size > memory.options.file_size_max {
            return Err(Status::FBig);
        }
    }
    let sound = |time: Option<SetTime>| match time {
        Some(SetTime::To(time)) => time.nanoseconds < NANOSECONDS,
        _ => true,
    };
    if sound(set.atime) && sound(set.mtime) { Ok(()) } else { Err(Status::Inval) }
}

/// Makes a checked change. The requested mode is set last, so that a change of owner in the same
/// call does not alter it.
fn apply(state: &mut State, cred: &Cred<Disk>, set: &SetAttr<Disk>, now: Time) -> Result<()> {
    if set.uid.is_some() || set.gid.is_some() {
        state.meta.mode = mode_after_chown(cred, &state.attr());
        state.meta.uid = set.uid.unwrap_or(state.meta.uid);
        state.meta.gid = set.gid.unwrap_or(state.meta.gid);
    }
    state.touch(now);
    if let Some(size) = set.size {
        state.meta.mode = mode_after_write(cred, &state.attr());
        let (content, charge) = state.content_mut()?;
        content.set_size(charge, size);
        state.meta.mtime = state.meta.ctime;
        state.forget_verifier();
    }
    if let Some(mode) = set.mode {
        change_mode(state, cred, mode);
    }
    if set.atime.is_some() || set.mtime.is_some() {
        state.forget_verifier();
        set_times(state, set, now);
    }
    Ok(())
}

pub(super) fn set_times(state: &mut State, set: &SetAttr<Disk>, now: Time) {
    let value = |set: SetTime| match set {
        SetTime::Now => now,
        SetTime::To(time) => time,
    };
    state.meta.atime = set.atime.map_or(state.meta.atime, value);
    state.meta.mtime = set.mtime.map_or(state.meta.mtime, value);
}

/// Updates the time of last access, but seldom, so that readers rarely need the write lock; returns
/// that time.
pub(super) fn accessed(memory: &Memory, node: &Node, attr: &Attr<Disk>) -> Time {
    let now = memory.now();
    let Attr { atime, mtime, ctime, .. } = *attr;
    let old = atime.seconds.saturating_add(ATIME_AGE_SECONDS) <= now.seconds;
    if atime > mtime && atime > ctime && !old {
        return atime;
    }
    node.write().meta.atime = now;
    now
}

fn change_mode(state: &mut State, cred: &Cred<Disk>, mode: Mode) {
    state.meta.mode = mode_after_chmod(cred, state.meta.gid, mode);
    state.acl = state.acl.take().map(|acl| acl.with_mode(mode));
}
