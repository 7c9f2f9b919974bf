use crate::ancestry::Tree;

/// An export, for a question about one of its objects.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The number of the export, by which decisions are told apart.
    pub number: u32,
    /// The path of the export, which credentials name.
    pub path: &'a str,
    /// Its file system.
    pub tree: Tree<'a>,
}
