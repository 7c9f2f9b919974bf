use std::sync::Arc;

use crate::ancestry::Tree;
use crate::policy::Policy;

/// An export, for a question about one of its objects.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The number of the export, by which decisions are told apart.
    pub number: u32,
    /// The path of the export, which credentials name.
    pub path: &'a str,
    /// Its file system.
    pub tree: Tree<'a>,
    /// The administrator's policy for it, if there is one.
    pub policy: Option<&'a Arc<Policy>>,
}
