//! The names at the root of a crate that a file uses: `b` of `crate::b::C`, and of `super::b` if
//! the parent is the root.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemUse, Macro, Path, UseTree};

use crate::tidy::modules::is_test_only;

/// All such names in a file of the module, except in tests, with their lines.
pub(super) fn of(file: &syn::File, module: &[String]) -> Vec<(String, usize)> {
    let mut paths = Paths { module: module.to_vec(), found: Vec::new() };
    paths.visit_file(file);
    paths.found
}

struct Paths {
    /// The module of the code that is being read.
    module: Vec<String>,
    found: Vec<(String, usize)>,
}

impl Paths {
    /// Notes the name that a path uses, if it begins at the root.
    fn note(&mut self, segments: &[String], line: usize) {
        let supers = segments.iter().take_while(|segment| *segment == "super").count();
        let leading = match segments.first().map(String::as_str) {
            Some("crate") => 1,
            Some("super") if supers == self.module.len() => supers,
            _ => return,
        };
        self.found.extend(segments.get(leading).map(|name| (name.clone(), line)));
    }

    fn note_tree(&mut self, tree: &UseTree, before: &[String], line: usize) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.note_tree(&path.tree, &with(&path.ident), line),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.note_tree(tree, before, line));
            }
            UseTree::Name(name) => self.note(&with(&name.ident), name.ident.span().start().line),
            UseTree::Rename(rename) => self.note(&with(&rename.ident), line),
            _ => self.note(before, line),
        }
    }

    /// Looks for paths among the tokens of a macro's call.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    path.push(name.to_string());
                    line = name.span().start().line;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {}
                other => {
                    self.note(&std::mem::take(&mut path), line);
                    if let TokenTree::Group(group) = other {
                        self.note_tokens(group.stream());
                    }
                }
            }
        }
        self.note(&path, line);
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a Item) {
        if is_test_only(attributes(item)) {
            return;
        }
        let inline = match item {
            Item::Mod(module) if module.content.is_some() => Some(module.ident.to_string()),
            _ => None,
        };
        self.module.extend(inline.clone());
        visit::visit_item(self, item);
        if inline.is_some() {
            self.module.pop();
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        if !is_test_only(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.note_tree(&item.tree, &[], item.use_token.span.start().line);
    }

    fn visit_path(&mut self, path: &'a Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.note(&segments, line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.note_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

/// The attributes of an item that may be compiled for tests only.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
