/// Decodes values of DER (X.690) in order. Malformed bytes give `None`.
#[derive(Clone, Copy)]
pub(crate) struct Der<'a>(&'a [u8]);

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;

/// A value: its tag, its content, and its whole encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    pub(crate) whole: &'a [u8],
}

/// The tag of a constructed value with a context-specific number.
pub(crate) const fn constructed(number: u8) -> u8 {
    0xa0 | number
}

/// The tag of a primitive value with a context-specific number.
pub(crate) const fn primitive(number: u8) -> u8 {
    0x80 | number
}

impl<'a> Der<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value. Multi-byte tags and lengths above 65,535 are refused as malformed.
    pub(crate) fn any(&mut self) -> Option<Value<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81 => {
                let (&length, rest) = rest.split_first()?;
                (usize::from(length), rest)
            }
            0x82 => {
                let (length, rest) = rest.split_first_chunk()?;
                (usize::from(u16::from_be_bytes(*length)), rest)
            }
            _ => return None,
        };
        let (content, behind) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - behind.len())?;
        self.0 = behind;
        (tag & 0x1f != 0x1f).then_some(Value { tag, content, whole })
    }

    /// The next value, which must have this tag.
    pub(crate) fn value(&mut self, tag: u8) -> Option<Value<'a>> {
        self.any().filter(|value| value.tag == tag)
    }

    /// The content of the next value, which must have this tag.
    pub(crate) fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.value(tag).map(|value| value.content)
    }

    /// The values in the next value, which must have this tag.
    pub(crate) fn within(&mut self, tag: u8) -> Option<Self> {
        self.content(tag).map(Self)
    }

    /// The content of the next value if it has this tag; otherwise nothing is read.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let content = ahead.content(tag)?;
        *self = ahead;
        Some(content)
    }

    /// An unsigned number of at most 32 bits.
    pub(crate) fn number(&mut self) -> Option<u32> {
        let content = self.content(INTEGER)?;
        let digits = match content {
            [0, rest @ ..] if !rest.is_empty() => rest,
            [first, ..] if *first < 0x80 => content,
            _ => return None,
        };
        let fold = |number: u32, digit: &u8| number << 8 | u32::from(*digit);
        (digits.len() <= 4).then(|| digits.iter().fold(0, fold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_read_with_short_and_long_lengths() {
        let long = [&[SEQUENCE, 0x82, 1, 0][..], &[7; 256]].concat();
        let mut der = Der::new(&long);
        assert_eq!(
            der.any().map(|value| (value.content.len(), value.whole.len())),
            Some((256, 260))
        );
        assert!(der.is_empty());
        assert_eq!(Der::new(&[INTEGER, 0x81, 1, 9]).number(), Some(9));
        for malformed in [&[][..], &[INTEGER], &[INTEGER, 2, 1], &[INTEGER, 0x80, 0, 0], &[0x1f, 0]]
        {
            assert_eq!(Der::new(malformed).any(), None, "{malformed:?}");
        }
    }

    #[test]
    fn a_number_is_unsigned_and_has_32_bits() {
        let number = |content: &[u8]| {
            Der::new(&[&[INTEGER, content.len() as u8], content].concat()).number()
        };
        assert_eq!(number(&[0]), Some(0));
        assert_eq!(number(&[0, 0xff, 0xff, 0xff, 0xff]), Some(u32::MAX));
        assert_eq!(number(&[3, 0xe8]), Some(1000));
        for wrong in [&[][..], &[0xff], &[1, 0, 0, 0, 0]] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic_and_decoding_ends(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut der = Der::new(&bytes);
            let mut read = 0;
            while let Some(value) = der.any() {
                read += value.whole.len();
                prop_assert!(value.whole.ends_with(value.content));
            }
            prop_assert!(read <= bytes.len());
        }
    }
}
