use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;
use crate::traits::Traits;

/// The function of an operation: it decodes the arguments, acts on the COMPOUND, and appends the
/// body of the result (the part after the status).
pub(crate) type Perform =
    for<'a> fn(&mut Compound<'a>, &mut Decoder<'a>, &mut Encoder) -> Result<(), Stop>;

/// A row of the table of operations.
pub(crate) struct Row {
    /// Its number.
    pub(crate) number: u32,
    /// Its name in the RFC.
    pub(crate) name: &'static str,
    /// The last minor version that supports it.
    pub(crate) until: u32,
    /// Its other properties.
    pub(crate) traits: Traits,
    /// Words of zero that follow the status of a failure.
    pub(crate) failure_words: usize,
    /// The function that executes it.
    pub(crate) perform: Perform,
}
