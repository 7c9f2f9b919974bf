/// A piece of a range of a file that is on one data server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StripePiece {
    /// The number of the data server.
    pub(crate) server: usize,
    /// The offset in the file, and also on the data server, in bytes.
    pub(crate) offset: u64,
    /// The length in bytes.
    pub(crate) length: u64,
}

/// Divides a range of a file, in bytes, into pieces that are each on one of `servers` data servers.
pub(crate) fn pieces(
    unit_bytes: u32,
    servers: usize,
    offset: u64,
    length: u64,
) -> impl Iterator<Item = StripePiece> {
    let (unit, servers) = (u64::from(unit_bytes.max(1)), servers.max(1) as u64);
    let end = offset.saturating_add(length);
    let mut at = offset;
    std::iter::from_fn(move || {
        let behind = (at / unit).saturating_add(1).saturating_mul(unit).min(end);
        let length = behind.checked_sub(at).filter(|length| *length > 0)?;
        let piece = StripePiece { server: (at / unit % servers) as usize, offset: at, length };
        at = behind;
        Some(piece)
    })
}

/// The length that the data file on one of `servers` data servers must have for a file of this
/// size, in bytes: the end of the last unit there.
pub(crate) fn length_on(unit_bytes: u32, servers: usize, server: usize, size: u64) -> u64 {
    let (unit, servers, server) =
        (u64::from(unit_bytes.max(1)), servers.max(1) as u64, server as u64);
    let last = size.checked_sub(1).map(|last| last / unit);
    let Some((last, over)) = last.and_then(|last| Some((last, last.checked_sub(server)?))) else {
        return 0;
    };
    let own = last - over % servers;
    (own + 1).saturating_mul(unit).min(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_lie_on_the_servers_by_turns() {
        let found: Vec<_> = pieces(10, 2, 5, 20).collect();
        let piece = |server, offset, length| StripePiece { server, offset, length };
        assert_eq!(found, [piece(0, 5, 5), piece(1, 10, 10), piece(0, 20, 5)]);
        assert_eq!(pieces(10, 2, 5, 0).count(), 0);
    }

    proptest! {
        #[test]
        fn a_data_file_ends_where_its_last_piece_ends(
            unit in 1..50_u32,
            servers in 1..5_usize,
            size in 0..500_u64,
        ) {
            let mut ends = vec![0; servers];
            for piece in pieces(unit, servers, 0, size) {
                ends[piece.server] = piece.offset + piece.length;
            }
            for (server, end) in ends.into_iter().enumerate() {
                prop_assert_eq!(length_on(unit, servers, server, size), end);
            }
        }

        #[test]
        fn pieces_are_the_range_in_order(
            unit in 1..50_u32,
            servers in 1..5_usize,
            offset in prop_oneof![0..500_u64, Just(u64::MAX - 100)],
            length in 0..200_u64,
        ) {
            let mut at = offset;
            for piece in pieces(unit, servers, offset, length) {
                prop_assert_eq!(piece.offset, at);
                prop_assert!(piece.length > 0 && piece.server < servers);
                let unit = u64::from(unit);
                let (first, last) = (at / unit, (at + piece.length - 1) / unit);
                prop_assert_eq!(first, last);
                prop_assert_eq!(first % servers as u64, piece.server as u64);
                at += piece.length;
            }
            prop_assert_eq!(at, offset.saturating_add(length));
        }
    }
}
