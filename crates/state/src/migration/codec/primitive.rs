//! Numbers, times, bytes, lists and identifiers.

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::Handle;
use comity_vfs::limits::HANDLE_BYTES_MAX;
use comity_xdr::{Decoder, Encoder, Malformed};

use super::value::{Field, fields, variants};
use crate::{
    ByteRange, Caller, ClientId, FileKey, KeyId, LockType, Origin, OriginChannel, Principal,
    Result, SessionId, Share, Verifier,
};

/// Most bytes of a name: of clients and owners (`NFS4_OPAQUE_LIMIT`), of machines, and of the parts
/// of callback addresses.
const NAME_BYTES_MAX: u32 = 1024;

/// Most bytes of a reply that an owner or a slot keeps.
const REPLY_BYTES_MAX: u32 = 64 << 10;

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            const BYTES_MIN: usize = size_of::<$number>();

            fn put(&self, to: &mut Encoder) {
                to.value(self);
            }

            fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
                from.value()
            }
        }
    )*};
}

numbers!(u32, i32, u64);

impl Field for bool {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        to.value(self);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        from.value()
    }
}

impl Field for u16 {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        to.value(&u32::from(*self));
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let limit = u32::from(Self::MAX);
        let length: u32 = from.value()?;
        length.try_into().map_err(|_| Malformed::TooLong { length, limit })
    }
}

impl<const N: usize> Field for [u8; N] {
    const BYTES_MIN: usize = N;

    fn put(&self, to: &mut Encoder) {
        to.value(self);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        from.value()
    }
}

/// A time as a number of nanoseconds. 584 years are the most.
impl Field for Duration {
    const BYTES_MIN: usize = 8;

    fn put(&self, to: &mut Encoder) {
        to.value(&u64::try_from(self.as_nanos()).unwrap_or(u64::MAX));
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        from.value().map(Self::from_nanos)
    }
}

/// A name.
impl Field for Box<[u8]> {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        to.opaque(self);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        from.opaque(NAME_BYTES_MAX).map(Into::into)
    }
}

/// A reply, or the handle in it.
impl Field for Arc<[u8]> {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        to.opaque(self);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        from.opaque(REPLY_BYTES_MAX).map(Into::into)
    }
}

impl Field for Arc<str> {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        to.opaque(self.as_bytes());
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let text = from.opaque(NAME_BYTES_MAX)?;
        let text = std::str::from_utf8(text);
        text.map(Into::into).map_err(|_| Malformed::Discriminant { of: "text", found: 0 })
    }
}

impl<T: Field> Field for Option<T> {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        if bool::take(from)? { T::take(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Field> Field for Vec<T> {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        to.value(&(self.len() as u32));
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let limit = from.rest().len().saturating_sub(4) / T::BYTES_MIN.max(1);
        let count = from.length(u32::try_from(limit).unwrap_or(u32::MAX))?;
        let mut values = Self::with_capacity(count);
        for _ in 0..count {
            values.push(T::take(from)?);
        }
        Ok(values)
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    const BYTES_MIN: usize = A::BYTES_MIN + B::BYTES_MIN;

    fn put(&self, to: &mut Encoder) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

/// A backend's handle.
impl Field for Handle {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        to.opaque(self.bytes());
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let limit = HANDLE_BYTES_MAX as u32;
        let bytes = from.opaque(limit)?;
        let length = bytes.len() as u32;
        Self::new(bytes).map_err(|_| Malformed::TooLong { length, limit })
    }
}

impl Field for Origin {
    const BYTES_MIN: usize = 20;

    fn put(&self, to: &mut Encoder) {
        self.bytes().put(to);
        self.channel().put(to);
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let address = Self::from_bytes(Field::take(from)?);
        Ok(address.over(Field::take(from)?))
    }
}

impl Field for OriginChannel {
    const BYTES_MIN: usize = 4;

    fn put(&self, to: &mut Encoder) {
        match self {
            Self::Plain => to.value(&0_u32),
            Self::Tls => to.value(&1_u32),
            Self::Key(key) => {
                to.value(&2_u32);
                key.0.put(to);
            }
        }
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match from.value::<u32>()? {
            0 => Ok(Self::Plain),
            1 => Ok(Self::Tls),
            2 => Field::take(from).map(|key| Self::Key(KeyId(key))),
            found => Err(Malformed::Discriminant { of: "OriginChannel", found }),
        }
    }
}

/// Makes a struct with one unnamed field a [`Field`].
macro_rules! wrappers {
    ($($name:ident($inner:ty)),*) => {$(
        impl Field for $name {
            const BYTES_MIN: usize = <$inner as Field>::BYTES_MIN;

            fn put(&self, to: &mut Encoder) {
                self.0.put(to);
            }

            fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
                Field::take(from).map(Self)
            }
        }
    )*};
}

wrappers!(ClientId(u64), Principal(u64), SessionId([u8; 16]), Verifier([u8; 8]));
fields!(Caller { principal: Principal, origin: Origin });
fields!(FileKey { volume: u64, export: u32, handle: Handle });
fields!(ByteRange { first: u64, last: u64 });
fields!(Share { access: u32, deny: u32 });
variants!(LockType { 1 => Read, 2 => Write });
