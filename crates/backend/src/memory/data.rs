use std::ops::Range;

use comity_vfs::permission::mode_after_write;
use comity_vfs::{
    Attr, Change, Changed, Cred, Data, Disk, Handle, Read, ReadInto, Result, Seek, Status, Target,
    Written,
};

use super::Memory;
use super::attributes::{accessed, attr_of_living};
use super::content::{Content, Shared};
use super::limits::{COPY_BYTES_MAX, PAGE_BYTES};
use super::node::{Body, State};
use super::space::Charge;

pub(super) fn readlink(memory: &Memory, node: &Handle) -> Result<(Target, Attr<Disk>)> {
    let node = memory.table.find(node)?;
    let state = node.read();
    let attr = attr_of_living(&state)?;
    match &state.body {
        Body::Symlink(target) => Ok((target.clone(), attr)),
        _ => Err(Status::Inval),
    }
}

pub(super) fn read(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    (offset, count): (u64, u32),
    into: &mut ReadInto<'_>,
) -> Result<Read<Disk>> {
    let node = memory.table.find(node)?;
    let state = node.read();
    let mut attr = if into.opened { attr_of_living(&state)? } else { readable(&state, cred)? };
    let length = state.content()?.read(offset, count, into.bytes);
    drop(state);
    let eof = offset.saturating_add(u64::from(length)) >= attr.size;
    attr.atime = accessed(memory, &node, &attr);
    Ok(Read { data: Data::Appended(length), eof, attr: Some(attr) })
}

pub(super) fn write(
    memory: &Memory,
    writer: (&Cred<Disk>, bool),
    node: &Handle,
    offset: u64,
    data: &[u8],
) -> Result<Written<Disk>> {
    let space = memory.options.file_size_max.saturating_sub(offset);
    let fits = data.len().min(usize::try_from(space).unwrap_or(usize::MAX));
    change(memory, writer, node, |content, charge| match fits {
        _ if data.is_empty() => Ok(None),
        0 => Err(Status::FBig),
        _ => content.write(charge, offset, &data[..fits]).map(Some),
    })
    .map(|Changed { value, change }| Changed { value: value.unwrap_or(0), change })
}

pub(super) fn seek(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    offset: u64,
    what: Seek,
) -> Result<u64> {
    let node = memory.table.find(node)?;
    let state = node.read();
    readable(&state, cred)?;
    state.content()?.seek(offset, what).ok_or(Status::NoData)
}

pub(super) fn allocate(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    offset: u64,
    length: u64,
) -> Result<Change<Disk>> {
    let range = range(offset, length)?;
    if range.end > memory.options.file_size_max {
        return Err(Status::FBig);
    }
    let allocate =
        |content: &mut Content, charge: &mut Charge| content.allocate(charge, range).map(Some);
    change(memory, (cred, false), node, allocate).map(|changed| changed.change)
}

pub(super) fn deallocate(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    offset: u64,
    length: u64,
) -> Result<Change<Disk>> {
    let range = range(offset, length)?;
    let punch = |content: &mut Content, charge: &mut Charge| {
        content.punch(charge, range);
        Ok(Some(()))
    };
    change(memory, (cred, false), node, punch).map(|changed| changed.change)
}

/// Copies one piece: a hole of any length as a hole, or data up to [`COPY_BYTES_MAX`]. The source's
/// lock is released before the target's is taken, so two copies in opposite directions cannot
/// deadlock.
pub(super) fn copy(
    memory: &Memory,
    cred: &Cred<Disk>,
    (source, from): (&Handle, u64),
    (target, to): (&Handle, u64),
    length: u64,
) -> Result<Changed<u64, Disk>> {
    let overlap = from < to.saturating_add(length) && to < from.saturating_add(length);
    if source == target && overlap {
        return Err(Status::Inval);
    }
    let length = length.min(memory.options.file_size_max.saturating_sub(to));
    let piece = piece(memory, cred, source, from, length)?;
    change(memory, (cred, false), target, |content, charge| match piece {
        Piece::None => Ok(None),
        Piece::Hole(length) => {
            content.punch(charge, to..to + length);
            content.set_size(charge, content.size().max(to + length));
            Ok(Some(length))
        }
        Piece::Data(data) => content.write(charge, to, &data).map(|count| Some(count.into())),
    })
    .map(|Changed { value, change }| Changed { value: value.unwrap_or(0), change })
}

/// Shares pages of the source, as they are at one moment, with the target.
pub(super) fn clone_range(
    memory: &Memory,
    cred: &Cred<Disk>,
    (source, from): (&Handle, u64),
    (target, to): (&Handle, u64),
    length: u64,
) -> Result<Change<Disk>> {
    let end = |begin: u64| begin.checked_add(length).ok_or(Status::FBig);
    let (here, there) = (from..end(from)?, to..end(to)?);
    if there.end > memory.options.file_size_max {
        return Err(Status::FBig);
    }
    let overlap = here.start < there.end && there.start < here.end;
    if source == target && overlap || !is_whole(from) || !is_whole(to) {
        return Err(Status::Inval);
    }
    let (shared, at_end) = shared(memory, cred, source, here)?;
    let adopt = |content: &mut Content, charge: &mut Charge| {
        // A part of a page can be shared only where both files end in it.
        let both_end = at_end && there.end >= content.size();
        match length {
            _ if !is_whole(length) && !both_end => Err(Status::Inval),
            0 => Ok(None),
            _ => content.adopt(charge, to, shared).map(Some),
        }
    };
    change(memory, (cred, false), target, adopt).map(|changed| changed.change)
}

const fn is_whole(offset: u64) -> bool {
    offset.is_multiple_of(PAGE_BYTES)
}

/// Returns the pages of a range, and whether the file ends with it.
fn shared(
    memory: &Memory,
    cred: &Cred<Disk>,
    source: &Handle,
    range: Range<u64>,
) -> Result<(Shared, bool)> {
    let node = memory.table.find(source)?;
    let state = node.read();
    readable(&state, cred)?;
    let content = state.content()?;
    let at_end = range.end == content.size();
    // Only an empty range may share no pages.
    if range.end > content.size() || range.is_empty() && !at_end {
        return Err(Status::Inval);
    }
    Ok((content.share(range), at_end))
}

enum Piece {
    None,
    Hole(u64),
    Data(Vec<u8>),
}

fn piece(
    memory: &Memory,
    cred: &Cred<Disk>,
    source: &Handle,
    from: u64,
    length: u64,
) -> Result<Piece> {
    let node = memory.table.find(source)?;
    let state = node.read();
    readable(&state, cred)?;
    let content = state.content()?;
    let length = length.min(content.size().saturating_sub(from));
    if length == 0 {
        return Ok(Piece::None);
    }
    let data_at = content.seek(from, Seek::Data).unwrap_or(content.size());
    if data_at > from {
        return Ok(Piece::Hole(length.min(data_at - from)));
    }
    let mut data = Vec::new();
    content.read(from, length.min(COPY_BYTES_MAX.into()) as u32, &mut data);
    Ok(Piece::Data(data))
}

/// Changes a file's data under its lock; `None` from `work` means that nothing was changed. The
/// caller has the file `opened`, or its rights are checked now.
fn change<T>(
    memory: &Memory,
    (cred, opened): (&Cred<Disk>, bool),
    node: &Handle,
    work: impl FnOnce(&mut Content, &mut Charge) -> Result<Option<T>>,
) -> Result<Changed<Option<T>, Disk>> {
    let node = memory.table.find(node)?;
    let mut state = node.write();
    let before = attr_of_living(&state)?;
    state.content()?;
    if !opened {
        state.object(&before).check_write_data(cred)?;
    }
    let (content, charge) = state.content_mut()?;
    let value = work(content, charge)?;
    if value.is_some() {
        state.meta.mode = mode_after_write(cred, &before);
        state.touch_data(memory.now());
    }
    let change = Change { before: Some(before), after: Some(state.attr()) };
    Ok(Changed { value, change })
}

fn readable(state: &State, cred: &Cred<Disk>) -> Result<Attr<Disk>> {
    let attr = attr_of_living(state)?;
    state.content()?;
    state.object(&attr).check_read_data(cred)?;
    Ok(attr)
}

fn range(offset: u64, length: u64) -> Result<Range<u64>> {
    if length == 0 {
        return Err(Status::Inval);
    }
    offset.checked_add(length).map(|end| offset..end).ok_or(Status::FBig)
}
