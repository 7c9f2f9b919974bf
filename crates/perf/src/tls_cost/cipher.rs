use std::hint::black_box;

use anyhow::{Result, anyhow};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of data in a record of TLS.
const RECORD_BYTES: usize = 1 << 14;
/// Records that are sealed.
const RECORDS: u64 = 40_000;

/// Bytes that the cipher of the connections seals in a second of processor time, a record after the
/// other, in place.
///
/// # Errors
/// There are no random bytes.
pub(super) fn bytes_a_second() -> Result<f64> {
    let failed = |_| anyhow!("the cipher fails");
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(failed)?);
    let mut record = vec![7; RECORD_BYTES];
    let before = processor_nanoseconds();
    for number in 0..RECORDS {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = key.seal_in_place_separate_tag(nonce, Aad::from([7; 5]), &mut record);
        let _ = black_box(sealed.map_err(failed)?);
    }
    let seconds = (processor_nanoseconds() - before) as f64 / 1e9;
    Ok((RECORDS * RECORD_BYTES as u64) as f64 / seconds)
}

fn processor_nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
