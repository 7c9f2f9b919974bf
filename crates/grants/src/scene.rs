use std::sync::Arc;

use crate::ancestry::Tree;
use crate::policy::Policy;

/// The export to which a question about an object belongs.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The number of the export, which is part of the key of cached decisions.
    pub number: u32,
    /// The path of the export, which credentials name.
    pub path: &'a str,
    /// Its file system.
    pub tree: Tree<'a>,
    /// The administrator's policy for it, if there is one.
    pub policy: Option<&'a Arc<Policy>>,
}
