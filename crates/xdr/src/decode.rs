use crate::{Malformed, padding};

/// A value that can be read from XDR bytes, borrowing from them where it can.
pub trait Decode<'a>: Sized {
    /// Reads one value and leaves the decoder after it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no such value; the decoder is then spent.
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed>;
}

/// A reading position in a received record.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Starts at the first byte of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads all of `bytes` as one value.
    ///
    /// # Errors
    /// [`Malformed`], [`Malformed::Leftover`] among them.
    pub fn whole<T: Decode<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
        let mut decoder = Self::new(bytes);
        let value = T::decode(&mut decoder)?;
        decoder.finish()?;
        Ok(value)
    }

    /// Bytes not yet read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next value.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no such value.
    pub fn value<T: Decode<'a>>(&mut self) -> Result<T, Malformed> {
        T::decode(self)
    }

    /// Confirms that nothing is left.
    ///
    /// # Errors
    /// [`Malformed::Leftover`].
    pub const fn finish(&self) -> Result<(), Malformed> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(Malformed::Leftover(bytes)),
        }
    }

    /// Takes exactly `N` bytes, without padding.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(Malformed::Truncated { wanted: N, left: self.rest.len() }),
        }
    }

    /// Reads words, all at once.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    #[inline]
    pub fn words<const N: usize>(&mut self) -> Result<[u32; N], Malformed> {
        let (words, _) = self.rest.as_chunks::<4>();
        let Some(words) = words.first_chunk::<N>() else {
            return Err(Malformed::Truncated { wanted: 4 * N, left: self.rest.len() });
        };
        self.rest = self.rest.get(4 * N..).unwrap_or_default();
        Ok(words.map(u32::from_be_bytes))
    }

    /// Takes `length` bytes and the zero padding after them.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::Padding`].
    #[inline]
    pub fn fixed(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let data = self.take(length)?;
        self.padding(length)?;
        Ok(data)
    }

    /// Takes the zero bytes that follow `length` bytes of data.
    #[inline]
    pub(crate) fn padding(&mut self, length: usize) -> Result<(), Malformed> {
        if length.is_multiple_of(4) {
            return Ok(());
        }
        let pad = self.take(padding(length))?;
        if pad.iter().any(|&byte| byte != 0) { Err(Malformed::Padding) } else { Ok(()) }
    }

    /// Takes variable-length opaque data of at most `limit` bytes (RFC 4506, 4.10).
    ///
    /// # Errors
    /// [`Malformed`]; a length above `limit` is refused before a byte is looked at.
    #[inline]
    pub fn opaque(&mut self, limit: u32) -> Result<&'a [u8], Malformed> {
        let length = self.length(limit)?;
        self.fixed(length)
    }

    /// Reads a length or count, which must be at most `limit`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::TooLong`].
    #[inline]
    pub fn length(&mut self, limit: u32) -> Result<usize, Malformed> {
        let length = u32::from_be_bytes(self.array()?);
        if length > limit {
            return Err(Malformed::TooLong { length, limit });
        }
        Ok(length as usize)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        match self.rest.split_at_checked(length) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(Malformed::Truncated { wanted: length, left: self.rest.len() }),
        }
    }
}
