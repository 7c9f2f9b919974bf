use comity_vfs::Handle;

/// Returns the shard of a table to which a file belongs. Two files may share one.
pub(crate) fn shard_of<'s, T, const SHARDS: usize>(
    shards: &'s [T; SHARDS],
    file: &Handle,
) -> &'s T {
    let sum = file
        .bytes()
        .iter()
        .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    // The index is below the length.
    #[allow(clippy::indexing_slicing, reason = "a remainder is less than the divisor")]
    &shards[sum % SHARDS]
}
