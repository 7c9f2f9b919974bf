use crate::{Decode, Decoder, Encode, Encoder, Malformed};

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Decode<'_> for $integer {
            #[inline]
            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
                Ok(<$integer>::from_be_bytes(decoder.array()?))
            }
        }

        impl Encode for $integer {
            #[inline]
            fn encode(&self, encoder: &mut Encoder) {
                encoder.raw(&self.to_be_bytes());
            }
        }
    )*};
}

integers!(u32, i32, u64, i64);

impl Decode<'_> for bool {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match u32::decode(decoder)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Malformed::Boolean(other)),
        }
    }
}

impl Encode for bool {
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        u32::from(*self).encode(encoder);
    }
}

/// Fixed-length opaque data (RFC 4506, 4.9).
impl<const N: usize> Decode<'_> for [u8; N] {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let data = decoder.array()?;
        decoder.padding(N)?;
        Ok(data)
    }
}

impl<const N: usize> Encode for [u8; N] {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.fixed(self);
    }
}

/// Optional data: a boolean, then the value if it is true (RFC 4506, 4.19).
impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        Ok(if bool::decode(decoder)? { Some(T::decode(decoder)?) } else { None })
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, encoder: &mut Encoder) {
        self.is_some().encode(encoder);
        if let Some(value) = self {
            value.encode(encoder);
        }
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, encoder: &mut Encoder) {
        (**self).encode(encoder);
    }
}

impl Encode for () {
    fn encode(&self, _: &mut Encoder) {}
}

impl Decode<'_> for () {
    fn decode(_: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}

/// Variable-length opaque data of at most `LIMIT` bytes, borrowed (RFC 4506, 4.10 and 4.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opaque<'a, const LIMIT: u32>(pub &'a [u8]);

impl<'a, const LIMIT: u32> Decode<'a> for Opaque<'a, LIMIT> {
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        decoder.opaque(LIMIT).map(Self)
    }
}

impl<const LIMIT: u32> Encode for Opaque<'_, LIMIT> {
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        debug_assert!(self.0.len() <= LIMIT as usize, "opaque above its limit");
        encoder.opaque(self.0);
    }
}

/// An array of at most `LIMIT` values (RFC 4506, 4.13), collected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted<T, const LIMIT: u32>(pub Vec<T>);

impl<'a, T: Decode<'a>, const LIMIT: u32> Decode<'a> for Counted<T, LIMIT> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let count = decoder.length(LIMIT)?;
        // Every XDR item has at least four bytes: a count is not believed beyond that.
        let mut values = Vec::with_capacity(count.min(decoder.rest().len() / 4));
        for _ in 0..count {
            values.push(T::decode(decoder)?);
        }
        Ok(Self(values))
    }
}

impl<T: Encode, const LIMIT: u32> Encode for Counted<T, LIMIT> {
    fn encode(&self, encoder: &mut Encoder) {
        (self.0.len() as u32).encode(encoder);
        for value in &self.0 {
            value.encode(encoder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded;
    use proptest::prelude::*;

    #[test]
    fn integers_are_big_endian() {
        assert_eq!(encoded(&0x0102_0304_u32), [1, 2, 3, 4]);
        assert_eq!(encoded(&-2_i64), [255, 255, 255, 255, 255, 255, 255, 254]);
    }

    #[test]
    fn words_are_taken_together_or_not_at_all() {
        let mut decoder = Decoder::new(&[0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0]);
        assert_eq!(decoder.words::<3>(), Err(Malformed::Truncated { wanted: 12, left: 11 }));
        assert_eq!(decoder.words(), Ok([1, 0x200]));
        assert_eq!(decoder.rest(), [0, 3, 0]);
    }

    #[test]
    fn a_boolean_is_zero_or_one() {
        assert_eq!(Decoder::whole::<bool>(&[0, 0, 0, 2]), Err(Malformed::Boolean(2)));
        assert_eq!(Decoder::whole::<bool>(&[0, 0, 0, 1]), Ok(true));
    }

    #[test]
    fn a_length_above_its_limit_is_refused_before_the_bytes_are_looked_at() {
        let found = Decoder::whole::<Opaque<'_, 8>>(&[0xff; 4]);
        assert_eq!(found, Err(Malformed::TooLong { length: u32::MAX, limit: 8 }));
    }

    #[test]
    fn padding_must_be_zero_for_fixed_and_counted_data() {
        assert_eq!(
            Decoder::whole::<Opaque<'_, 8>>(&[0, 0, 0, 1, 7, 0, 0, 1]),
            Err(Malformed::Padding)
        );
        assert_eq!(Decoder::whole::<[u8; 3]>(&[7, 7, 7, 1]), Err(Malformed::Padding));
        assert_eq!(Decoder::whole::<[u8; 3]>(&[7, 7, 7, 0]), Ok([7, 7, 7]));
    }

    #[test]
    fn a_huge_count_reserves_no_more_than_the_record_could_hold() {
        let found = Decoder::whole::<Counted<u32, { u32::MAX }>>(&[0xff; 8]);
        assert_eq!(found, Err(Malformed::Truncated { wanted: 4, left: 0 }));
    }

    #[test]
    fn a_record_counts_the_file_data_in_it() {
        let mut encoder = Encoder::new();
        let start = encoder.begin_record();
        encoder.value(&7_u32);
        let file = std::sync::Arc::new(std::fs::File::open("/dev/null").unwrap());
        encoder.file(file, 0, 12);
        encoder.end_record(start);
        assert_eq!(encoder.bytes(), [0x80, 0, 0, 16, 0, 0, 0, 7]);
        assert_eq!(encoder.files()[0].after, 8);
    }

    proptest! {
        #[test]
        fn written_values_are_read_again(
            number in any::<u64>(),
            data in proptest::collection::vec(any::<u8>(), 0..64),
            list in proptest::collection::vec(any::<i32>(), 0..9),
        ) {
            let mut encoder = Encoder::new();
            encoder.value(&Some(number));
            encoder.value(&Opaque::<64>(&data));
            encoder.value(&Counted::<_, 9>(list.clone()));
            let mut decoder = Decoder::new(encoder.bytes());
            prop_assert_eq!(decoder.value::<Option<u64>>(), Ok(Some(number)));
            prop_assert_eq!(decoder.value::<Opaque<'_, 64>>(), Ok(Opaque(&data[..])));
            prop_assert_eq!(decoder.value::<Counted<i32, 9>>(), Ok(Counted(list)));
            prop_assert_eq!(decoder.finish(), Ok(()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Decoder::whole::<Counted<Opaque<'_, 16>, 16>>(&bytes);
            let _ = Decoder::whole::<Option<[u8; 5]>>(&bytes);
        }
    }
}
