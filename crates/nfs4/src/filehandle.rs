use comity_export::{Export, Node, PseudoNode, View};

use crate::compound::Compound;
use crate::table::Stop;

/// An object that a COMPOUND works on: what the current or the saved file handle stands for.
#[derive(Clone)]
pub(crate) enum Object<'a> {
    /// A directory above the exports.
    Pseudo(PseudoNode<'a>),
    /// An object of an export.
    In(View<'a>, Node),
}

/// What a name leads to.
pub(crate) enum Finding<'a> {
    /// An object where the name was looked for.
    Object(Object<'a>),
    /// The top of an export, which is still to be entered.
    Export(&'a Export),
}

impl<'a> Finding<'a> {
    /// The object, the caller let in.
    pub(crate) fn entered(self, compound: &Compound<'a>) -> Result<Object<'a>, Stop> {
        match self {
            Self::Object(object) => Ok(object),
            Self::Export(export) => compound.enter_export(export),
        }
    }
}
