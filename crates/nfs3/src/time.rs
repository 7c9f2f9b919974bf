use comity_proto::nfs3::Nfstime3;
use comity_vfs::{Status, Time};

const NANOSECONDS_PER_SECOND: u32 = 1_000_000_000;

/// Returns a time in the form of NFSv3. Its seconds are unsigned and have 32 bits (RFC 1813,
/// 2.5): a time before 1970 becomes the first moment of 1970, and one after February 2106 the
/// last.
pub(crate) const fn nfstime3(time: Time) -> Nfstime3 {
    const LAST: i64 = u32::MAX as i64;
    match time.seconds {
        ..0 => Nfstime3 { seconds: 0, nseconds: 0 },
        seconds @ 0..=LAST => Nfstime3 { seconds: seconds as u32, nseconds: time.nanoseconds },
        _ => Nfstime3 { seconds: u32::MAX, nseconds: NANOSECONDS_PER_SECOND - 1 },
    }
}

/// Reads a time that a client sent.
///
/// # Errors
/// [`Status::Inval`] if its nanoseconds make more than a second.
pub(crate) fn time(time: Nfstime3) -> Result<Time, Status> {
    if time.nseconds >= NANOSECONDS_PER_SECOND {
        return Err(Status::Inval);
    }
    Ok(Time { seconds: i64::from(time.seconds), nanoseconds: time.nseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_the_wire_are_told_as_the_nearest() {
        let say = |seconds, nanoseconds| {
            let said = nfstime3(Time { seconds, nanoseconds });
            (said.seconds, said.nseconds)
        };
        assert_eq!(say(-1, 999_999_999), (0, 0));
        assert_eq!(say(0, 7), (0, 7));
        assert_eq!(say(0x7fff_ffff + 1, 7), (0x8000_0000, 7));
        assert_eq!(say(0xffff_ffff, 7), (0xffff_ffff, 7));
        assert_eq!(say(0x1_0000_0000, 7), (0xffff_ffff, 999_999_999));
    }

    #[test]
    fn a_billion_nanoseconds_are_no_time() {
        let said = |nseconds| time(Nfstime3 { seconds: u32::MAX, nseconds });
        assert_eq!(said(1_000_000_000), Err(Status::Inval));
        assert_eq!(said(999_999_999).unwrap().seconds, 0xffff_ffff);
    }
}
