//! `View::enter` is the only way from a protocol to an export, with `View::approach` for GETATTR.
//! The crates that may call them are listed here.

use syn::visit::{self, Visit};
use syn::{ExprCall, ImplItemFn, ItemFn, ItemMod};

use super::Finding;
use super::modules::is_test_only;
use super::sources::{Source, Tree};

/// The crates that open a view, each in one place. `nfs3` and `nfs4` do it for their protocols;
/// `granting` reads a path through a view, and changes nothing (see ARCHITECTURE.md).
const DOORS: &[&str] = &["nfs3", "nfs4", "granting"];

/// Counts the calls of `View::enter` or `View::approach` outside tests.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for function in ["enter", "approach"] {
        check_function(function, tree, findings);
    }
    for source in tree.sources.iter().filter(|source| !source.is_test) {
        check_clearances(source, findings);
    }
}

/// Finds code outside the crate `coherence` that makes a clearance.
fn check_clearances(source: &Source, findings: &mut Vec<Finding>) {
    if source.path.starts_with("crates/coherence/") {
        return;
    }
    let given = [("Clearance", "given"), ("DirectoryClearance", "given")];
    let given = given.into_iter().chain([("DirectoryClearance", "during")]);
    for line in given.flat_map(|call| calls_in(source, call)) {
        let what = "a clearance is given here";
        let remedy =
            "take the clearance from `comity-coherence`, which checks the state of clients";
        findings.push(Finding::new((source.path.as_str(), line), what, remedy));
    }
}

fn check_function(function: &str, tree: &Tree, findings: &mut Vec<Finding>) {
    let mut calls: Vec<(&str, usize)> = Vec::new();
    for source in tree.sources.iter().filter(|source| !source.is_test) {
        let lines = calls_in(source, ("View", function)).into_iter();
        calls.extend(lines.map(|line| (source.path.as_str(), line)));
    }
    for name in DOORS {
        let folder = format!("crates/{name}/");
        let own: Vec<_> = calls.iter().filter(|(path, _)| path.starts_with(&folder)).collect();
        match own.as_slice() {
            [] if function != "enter" => {}
            [] => findings.push(Finding::new(
                (&format!("{folder}src/lib.rs"), 1),
                format!("`{name}` never calls `View::enter`"),
                "a protocol reaches an export through its view only",
            )),
            [_] => {}
            [_, more @ ..] => {
                more.iter().for_each(|call| findings.push(second_door(function, **call)));
            }
        }
        calls.retain(|(path, _)| !path.starts_with(&folder));
    }
    findings.extend(calls.into_iter().map(|call| second_door(function, call)));
}

fn second_door(function: &str, at: (&str, usize)) -> Finding {
    let remedy = "call the entry function of the crate; they are listed in \
                  xtask/src/tidy/doors.rs";
    Finding::new(at, format!("`View::{function}` is called here too"), remedy)
}

fn calls_in(source: &Source, (owner, function): (&str, &str)) -> Vec<usize> {
    let mut calls = Calls { owner, function, lines: Vec::new() };
    calls.visit_file(&source.syntax);
    calls.lines
}

/// The lines of the calls in code that is not compiled for tests only.
struct Calls<'f> {
    owner: &'f str,
    function: &'f str,
    lines: Vec<usize>,
}

impl<'a> Visit<'a> for Calls<'_> {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        if !is_test_only(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        if !is_test_only(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
            if let (Some(last), Some(owner)) = (names.next(), names.next())
                && last == self.function
                && owner == self.owner
            {
                self.lines.push(last.span().start().line);
            }
        }
        visit::visit_expr_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Finding> {
        let granting = ("crates/granting/src/lib.rs", "fn f() { View::enter(1); }");
        let files = std::iter::once(&granting).chain(files);
        let sources = files.map(|(path, text)| Source::parse(path, text).unwrap());
        let tree = Tree { texts: Vec::new(), sources: sources.collect() };
        let mut findings = Vec::new();
        check(&tree, &mut findings);
        findings
    }

    #[test]
    fn one_call_in_the_door_is_right() {
        let text = "fn f() { let view = View::enter(export, caller); }\n\
                    #[cfg(test)] mod tests { fn g() { View::enter(1); } }";
        let doors = [("crates/nfs3/src/lib.rs", text), ("crates/nfs4/src/lib.rs", text)];
        assert_eq!(found(&doors), []);
    }

    #[test]
    fn none_two_and_elsewhere_are_found() {
        let one = "fn f() { export::View::enter(1); }";
        let other = ("crates/nfs4/src/a.rs", one);
        assert_eq!(found(&[other, ("crates/nfs3/src/lib.rs", "fn f() {}")]).len(), 1);
        let two = "fn f() { View::enter(1);\n View::enter(2); }";
        assert_eq!(found(&[other, ("crates/nfs3/src/a.rs", two)])[0].line, 2);
        let both = [other, ("crates/nfs3/src/a.rs", one), ("crates/server/src/b.rs", one)];
        assert_eq!(found(&both)[0].path, "crates/server/src/b.rs");
        let look = "fn f() { View::enter(1); View::approach(1); }";
        assert_eq!(found(&[other, ("crates/nfs3/src/a.rs", look)]), []);
        let twice = "fn f() { View::enter(1); View::approach(1);\n View::approach(2); }";
        assert_eq!(found(&[other, ("crates/nfs3/src/a.rs", twice)])[0].line, 2);
    }

    #[test]
    fn a_clearance_comes_from_coherence_only() {
        let text = "fn f() { View::enter(1); Clearance::given(); }";
        let test =
            "fn f() { View::enter(1); }\n#[cfg(test)] mod t { fn g() { Clearance::given(); } }";
        let given = "fn f() { Clearance::given() }";
        let right = ("crates/coherence/src/a.rs", given);
        let doors = [("crates/nfs3/src/a.rs", text), ("crates/nfs4/src/a.rs", test), right];
        let found = found(&doors);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "crates/nfs3/src/a.rs");
    }
}
