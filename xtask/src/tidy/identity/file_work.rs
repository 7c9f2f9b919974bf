//! The calls that work on files by path, in functions without an `AsServer`.

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprCall, ExprMethodCall, ExprPath, Ident, ImplItemFn, Item, ItemFn, ItemImpl,
    ItemMod, Macro, Signature, Token, TraitItemFn,
};

use super::imports::Imports;
use crate::tidy::modules::is_test_only;

/// Modules of which all functions take paths.
const MODULES: &[&str] = &["std::fs", "std::os::unix::fs"];

/// Other functions that take paths.
const FUNCTIONS: &[&str] = &[
    "rustix::fs::open",
    "rustix::fs::statfs",
    "rustix::fs::statvfs",
    "std::fs::DirBuilder::new",
    "std::fs::File::create",
    "std::fs::File::create_new",
    "std::fs::File::open",
    "std::fs::File::options",
    "std::fs::OpenOptions::new",
];

/// Methods of paths.
const METHODS: &[&str] =
    &["canonicalize", "exists", "read_dir", "read_link", "symlink_metadata", "try_exists"];

/// The directory of a call that takes a path and a directory, if the path alone names the file.
const WORKING_DIRECTORY: &str = "rustix::fs::CWD";

/// The function that names a descriptor by a path.
const LINK: &str = "link_of";

/// Returns the calls in a file that lack evidence of the server's identity, with their lines.
pub(super) fn without_evidence(file: &syn::File) -> Vec<(String, usize)> {
    let mut functions = Functions { imports: Imports::of(file), found: Vec::new() };
    functions.visit_file(file);
    functions.found
}

/// Visits every function that is not for tests only.
struct Functions {
    imports: Imports,
    found: Vec<(String, usize)>,
}

impl Functions {
    fn add(&mut self, signature: &Signature, body: &Block) {
        if !has_evidence(signature, body) {
            let mut work = FileWork { imports: &self.imports, found: Vec::new() };
            work.visit_block(body);
            self.found.append(&mut work.found);
        }
        visit::visit_block(self, body);
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'a ItemImpl) {
        if !is_test_only(&block.attrs) {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        if !is_test_only(&function.attrs) {
            self.add(&function.sig, &function.block);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        if !is_test_only(&function.attrs) {
            self.add(&function.sig, &function.block);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'a TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
    }
}

/// Returns whether a function takes an `AsServer` or makes one.
fn has_evidence(signature: &Signature, body: &Block) -> bool {
    let mut evidence = Evidence(false);
    evidence.visit_signature(signature);
    evidence.visit_block(body);
    evidence.0
}

struct Evidence(bool);

impl<'a> Visit<'a> for Evidence {
    fn visit_ident(&mut self, name: &'a Ident) {
        self.0 |= name == "AsServer";
    }

    /// A function in a function has evidence of its own.
    fn visit_item(&mut self, _: &'a Item) {}
}

/// The file work of one function.
struct FileWork<'i> {
    imports: &'i Imports,
    found: Vec<(String, usize)>,
}

impl FileWork<'_> {
    fn note(&mut self, function: &ExprPath) {
        let name = self.imports.full(&function.path).join("::");
        self.found.push((name, function.span().start().line));
    }

    fn is_working_directory(&self, argument: &Expr) -> bool {
        let Expr::Path(path) = argument else { return false };
        self.imports.full(&path.path).join("::") == WORKING_DIRECTORY
    }
}

impl<'a> Visit<'a> for FileWork<'_> {
    fn visit_item(&mut self, _: &'a Item) {}

    fn visit_expr_path(&mut self, path: &'a ExprPath) {
        if takes_path(&self.imports.full(&path.path)) {
            self.note(path);
        }
    }

    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        if call.args.iter().any(is_link) {
            return;
        }
        if let Expr::Path(function) = &*call.func
            && call.args.iter().any(|argument| self.is_working_directory(argument))
        {
            self.note(function);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if METHODS.iter().any(|name| call.method == name) {
            self.found.push((format!(".{}()", call.method), call.method.span().start().line));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        let arguments = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        let mut inner = FileWork { imports: self.imports, found: Vec::new() };
        arguments.iter().flatten().for_each(|argument| inner.visit_expr(argument));
        self.found.append(&mut inner.found);
    }
}

/// Returns whether a function, by its full path, works on a file that a path names.
fn takes_path(full: &[String]) -> bool {
    let Some((name, module)) = full.split_last() else { return false };
    let is_function = name.starts_with(|first: char| first.is_ascii_lowercase());
    let is_whole = is_function && MODULES.contains(&module.join("::").as_str());
    is_whole || FUNCTIONS.contains(&full.join("::").as_str())
}

/// Returns whether an argument is the path of a descriptor, which is open already.
fn is_link(argument: &Expr) -> bool {
    let Expr::Call(call) = argument else { return false };
    let Expr::Path(function) = &*call.func else { return false };
    function.path.segments.last().is_some_and(|last| last.ident == LINK)
}
