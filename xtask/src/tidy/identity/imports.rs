//! The full paths of the names that a file imports.

use std::collections::HashMap;

use syn::visit::{self, Visit};
use syn::{ItemUse, Path, UseTree};

/// The imported names of a file, with their full paths.
#[derive(Default)]
pub(super) struct Imports(HashMap<String, Vec<String>>);

impl Imports {
    pub(super) fn of(file: &syn::File) -> Self {
        let mut imports = Self::default();
        imports.visit_file(file);
        imports
    }

    /// Returns the full path of a path in the file.
    pub(super) fn full(&self, path: &Path) -> Vec<String> {
        let mut names = path.segments.iter().map(|segment| segment.ident.to_string());
        let first = names.next().unwrap_or_default();
        let first = self.0.get(&first).cloned().unwrap_or_else(|| vec![first]);
        first.into_iter().chain(names).collect()
    }

    fn add(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree, before)),
            UseTree::Name(name) => self.set(&name.ident, with(&name.ident)),
            UseTree::Rename(rename) => self.set(&rename.rename, with(&rename.ident)),
            UseTree::Glob(_) => {}
        }
    }

    /// Notes a name; `self` in a group stands for the module before it.
    fn set(&mut self, name: &syn::Ident, mut path: Vec<String>) {
        let is_module = path.last().is_some_and(|last| last == "self");
        path.truncate(path.len() - usize::from(is_module));
        let name = if name == "self" { path.last().cloned() } else { Some(name.to_string()) };
        self.0.extend(name.map(|name| (name, path)));
    }
}

impl<'a> Visit<'a> for Imports {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.add(&item.tree, &[]);
        visit::visit_item_use(self, item);
    }
}
