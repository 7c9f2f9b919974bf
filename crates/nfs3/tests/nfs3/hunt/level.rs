//! Replies with zeros for the fields that may differ: handles, which differ between instances, and
//! the values that docs/semantics.md says no cloak can hide (link counts, sizes and times of
//! directories, space).

use comity_proto::nfs3::procedure;

use super::twins::EXPORT;

/// Offsets of fields in a fattr3 (RFC 1813, 2.5).
const LINKS: usize = 8;
const SIZES: std::ops::Range<usize> = 20..36;
const FSID: usize = 44;
const MTIME_NANOSECONDS: usize = 72;
const CTIME_NANOSECONDS: usize = 80;
const BYTES: usize = 84;

/// The length of a sealed handle: a version, the export, eight bytes of MAC, and three words of the
/// memory backend, of which the second is the number of the object.
const HANDLE_BYTES: usize = 37;
const OBJECT: std::ops::Range<usize> = 21..29;

/// Returns `body` with zeros in those fields.
pub(crate) fn level(called: u32, body: &[u8], no_client_cache: bool) -> Vec<u8> {
    let mut level = body.to_vec();
    if called == procedure::FSSTAT {
        // The bytes after the status and the attributes, if there are any.
        let space = 4 + if word(body, 4) == Some(1) { 4 + BYTES } else { 4 };
        blank(&mut level, space..body.len());
    }
    for at in (0..body.len()).step_by(4) {
        if is_handle(body, at) {
            let bytes = at + 4..at + 4 + HANDLE_BYTES;
            blank(&mut level, bytes.start..bytes.start + OBJECT.start);
            blank(&mut level, bytes.start + OBJECT.end..bytes.end);
        }
        if let Some(start) = at.checked_sub(FSID).filter(|_| is_fsid(body, at)) {
            attributes(&mut level, body, start, no_client_cache, called);
        }
    }
    level
}

fn attributes(level: &mut [u8], body: &[u8], start: usize, no_client_cache: bool, called: u32) {
    blank(level, start + LINKS..start + LINKS + 4);
    if word(body, start) != Some(2) {
        return;
    }
    blank(level, start + SIZES.start..start + SIZES.end);
    if no_client_cache {
        for at in [MTIME_NANOSECONDS, CTIME_NANOSECONDS] {
            blank(level, start + at..start + at + 4);
        }
    }
    // The size in the wcc_attr before the attributes.
    let changes = (procedure::WRITE..=procedure::LINK).contains(&called);
    if (changes || called == procedure::SETATTR)
        && let Some(before) = start.checked_sub(32).filter(|at| word(body, *at) == Some(1))
    {
        blank(level, before + 4..before + 12);
    }
}

fn is_handle(body: &[u8], at: usize) -> bool {
    // The number of the export follows the version, so it is not aligned to a word.
    let of_export = body.get(at + 5..at + 9) == Some(&EXPORT.to_be_bytes());
    of_export && word(body, at) == Some(HANDLE_BYTES as u32) && at + 4 + HANDLE_BYTES <= body.len()
}

fn is_fsid(body: &[u8], at: usize) -> bool {
    word(body, at) == Some(EXPORT) && word(body, at + 4) == Some(EXPORT)
}

fn word(body: &[u8], at: usize) -> Option<u32> {
    body.get(at..at + 4).map(|word| u32::from_be_bytes(word.try_into().unwrap()))
}

fn blank(level: &mut [u8], range: std::ops::Range<usize>) {
    level[range].fill(0);
}
