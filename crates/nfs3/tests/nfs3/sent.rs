//! The bytes of a reply as the server crate sends them.

use std::os::unix::fs::FileExt;

use comity_xdr::Encoder;

/// The bytes that are sent, with the ranges of files that the reply refers to.
pub(crate) fn sent(replies: &Encoder) -> Vec<u8> {
    let (mut sent, mut from) = (Vec::new(), 0);
    for segment in replies.files() {
        sent.extend_from_slice(&replies.bytes()[from..segment.after]);
        let mut stretch = vec![0; segment.length as usize];
        segment.file.read_exact_at(&mut stretch, segment.offset).unwrap();
        sent.extend(stretch);
        from = segment.after;
    }
    sent.extend_from_slice(&replies.bytes()[from..]);
    sent
}
