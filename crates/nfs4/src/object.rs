use comity_export::{Node, PseudoNode, View};

/// An object that a COMPOUND works on: what the current or the saved file handle stands for.
#[derive(Clone)]
pub(crate) enum Object<'a> {
    /// A directory above the exports.
    Pseudo(PseudoNode<'a>),
    /// An object of an export.
    In(View<'a>, Node),
}
