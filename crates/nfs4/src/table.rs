use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;
use crate::traits::Traits;

/// An operation: reads its arguments, acts on the COMPOUND, appends the body of its result (what
/// follows the status).
pub(crate) type Perform =
    for<'a> fn(&mut Compound<'a>, &mut Decoder<'a>, &mut Encoder) -> Result<(), Stop>;

/// An operation of the table.
pub(crate) struct Row {
    /// Its number.
    pub(crate) number: u32,
    /// Its name in the RFC.
    pub(crate) name: &'static str,
    /// The last minor version that has it; to those behind it is not supported.
    pub(crate) until: u32,
    /// Its other properties.
    pub(crate) traits: Traits,
    /// Words of zero that follow the status of a failure.
    pub(crate) failure_words: usize,
    /// The function that does it.
    pub(crate) perform: Perform,
}
