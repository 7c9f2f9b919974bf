//! Values as XDR, both ways from one list of their fields.

use comity_xdr::{Decoder, Encoder, Malformed};

use crate::Result;

/// A value in the bytes of a volume.
pub(super) trait Field: Sized {
    /// The fewest bytes that a value has. A count of values is not believed beyond what the rest of
    /// the bytes can hold.
    const BYTES_MIN: usize;

    /// Appends the value.
    fn put(&self, to: &mut Encoder);

    /// Reads a value.
    ///
    /// # Errors
    /// [`Malformed`]: the bytes are no such value.
    fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed>;
}

/// Makes a struct a [`Field`]: its fields in this order. A name after `except` is a field that the
/// bytes do not have here, and that is empty when it is read.
macro_rules! fields {
    ($name:ty { $($field:ident: $type:ty),* $(,)? } $(except $($empty:ident),*)?) => {
        impl Field for $name {
            const BYTES_MIN: usize = 0 $(+ <$type as Field>::BYTES_MIN)*;

            fn put(&self, to: &mut Encoder) {
                $(self.$field.put(to);)*
            }

            fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
                $(let $field = <$type as Field>::take(from)?;)*
                Ok(Self { $($field,)* $($($empty: Vec::new(),)*)? })
            }
        }
    };
}

/// Makes an enum a [`Field`]: the number of its variant, and the fields of the variant.
macro_rules! variants {
    ($name:ident { $($number:literal => $variant:ident $({ $($field:ident),* })?),* $(,)? }) => {
        impl Field for $name {
            const BYTES_MIN: usize = 4;

            fn put(&self, to: &mut Encoder) {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        to.value(&($number as u32));
                        $($($field.put(to);)*)?
                    })*
                }
            }

            fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
                match from.value::<u32>()? {
                    $($number => {
                        $($(let $field = Field::take(from)?;)*)?
                        Ok(Self::$variant $({ $($field),* })?)
                    })*
                    found => Err(Malformed::Discriminant { of: stringify!($name), found }),
                }
            }
        }
    };
}

/// Makes boxed lists of a type a [`Field`]. A boxed list of bytes is a name instead.
macro_rules! lists {
    ($($type:ty),*) => {$(
        impl Field for Box<[$type]> {
            const BYTES_MIN: usize = 4;

            fn put(&self, to: &mut Encoder) {
                to.value(&(self.len() as u32));
                self.iter().for_each(|value| value.put(to));
            }

            fn take(from: &mut Decoder<'_>) -> Result<Self, Malformed> {
                Vec::take(from).map(Vec::into_boxed_slice)
            }
        }
    )*};
}

pub(super) use {fields, lists, variants};
