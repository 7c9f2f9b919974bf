//! Top-level modules of a crate (the children of its `lib.rs`, or of its `main.rs` if it has no
//! library) that use each other in a cycle. A module uses another if one of its files names
//! something by a path in the crate (`crate::other::...`, `super::...`, or a name that `lib.rs`
//! imports from there), or calls a method that stands there ([`methods`]). Code that is compiled
//! for tests only does not count.

mod graph;
mod methods;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use syn::{Item, UseTree};

use super::Finding;
use super::sources::{Source, Tree};
use super::tables::{Counts, allowed};
use graph::{Graph, UseLine};
use methods::Homes;

/// The number of modules in cycles, for every crate.
pub(super) fn measure(tree: &Tree) -> Counts {
    let graphs = graphs(tree).into_iter();
    graphs.map(|(name, graph)| (name, graph.knots().iter().map(Vec::len).sum())).collect()
}

/// Finds crates with more modules in cycles than the table allows.
pub(super) fn check(tree: &Tree, table: &Counts, findings: &mut Vec<Finding>) {
    for (name, graph) in graphs(tree) {
        let knots = graph.knots();
        let count: usize = knots.iter().map(Vec::len).sum();
        let most = allowed(table, &name);
        for knot in knots.iter().filter(|_| count > most) {
            let circle = graph.shortest_circle(knot);
            let Some((_, _, at)) = circle.first() else { continue };
            let steps = circle.iter().map(|(from, to, _)| format!("{from} -> {to}"));
            let steps = steps.collect::<Vec<_>>().join(", ");
            let what =
                format!("{count} modules of `{name}` are in cycles, {most} allowed: {steps}");
            let remedy =
                format!("move what both need below both; `cargo xtask tidy --cycles {name}`");
            findings.push(Finding::new((&at.path, at.line), what, remedy));
        }
    }
}

/// Lists every use between modules in cycles of a crate, with its first place.
pub(super) fn story(tree: &Tree, name: &str) -> String {
    let mut story = String::new();
    for (_, graph) in graphs(tree).into_iter().filter(|(other, _)| other == name) {
        for knot in graph.knots() {
            let _ = writeln!(story, "{} modules: {}", knot.len(), knot.join(" "));
            for (from, to, places) in graph.arrows_within(&knot) {
                let first = places.iter().next().map(|at| format!("{}:{}", at.path, at.line));
                let first = first.unwrap_or_default();
                let _ = writeln!(story, "  {from} -> {to}  {} times, first {first}", places.len());
            }
        }
    }
    if story.is_empty() { format!("no cycle in `{name}`\n") } else { story }
}

/// The graph of every crate.
fn graphs(tree: &Tree) -> BTreeMap<String, Graph> {
    let roots = tree.sources.iter().filter_map(|source| Some((root_of(tree, source)?, source)));
    roots.map(|(folder, root)| (name_of(&folder), graph(tree, &folder, root))).collect()
}

/// The folder of the sources, if the file is the root of a crate.
fn root_of(tree: &Tree, source: &Source) -> Option<String> {
    if let Some(folder) = source.path.strip_suffix("src/lib.rs") {
        return Some(folder.to_owned() + "src/");
    }
    let folder = source.path.strip_suffix("src/main.rs")?;
    let library = format!("{folder}src/lib.rs");
    let has_library = tree.sources.iter().any(|other| other.path == library);
    (!has_library).then(|| folder.to_owned() + "src/")
}

/// `state` for `crates/state/src/`.
fn name_of(folder: &str) -> String {
    let folder = folder.trim_end_matches("/src/");
    folder.strip_prefix("crates/").unwrap_or(folder).to_owned()
}

fn graph(tree: &Tree, folder: &str, root: &Source) -> Graph {
    let names = Names::of(root);
    let files = tree.sources.iter().filter(|source| !source.is_test).filter_map(|source| {
        let module = source.path.strip_prefix(folder).map(module_path)?;
        let top = module.first().filter(|top| names.modules.contains(*top))?.clone();
        Some((top, module, source))
    });
    let files: Vec<_> = files.collect();
    let homes = Homes::of(files.iter().map(|(top, _, source)| (top.as_str(), &source.syntax)));
    let mut graph = Graph::default();
    for (top, module, source) in &files {
        let named = paths::of(&source.syntax, module).into_iter();
        let named = named.filter_map(|(path, line)| Some((names.home(&path)?, line)));
        let uses = named.chain(homes.called(&source.syntax));
        for (other, line) in uses.filter(|(other, _)| *other != top) {
            graph.add(top, other, UseLine { path: source.path.clone(), line });
        }
    }
    graph
}

/// Returns `["a", "b"]` for `a/b.rs` and `a/b/mod.rs`, and nothing for the roots.
fn module_path(file: &str) -> Vec<String> {
    let file = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let is_root = ["lib", "main"].contains(&file);
    let parts = file.split('/').filter(|_| !is_root);
    parts.map(str::to_owned).collect()
}

/// The names at the root of a crate.
#[derive(Default)]
struct Names {
    modules: BTreeSet<String>,
    /// The module from which the root imports each name.
    brought: BTreeMap<String, String>,
}

impl Names {
    fn of(root: &Source) -> Self {
        let mut names = Self::default();
        for item in &root.syntax.items {
            match item {
                Item::Mod(module) => drop(names.modules.insert(module.ident.to_string())),
                Item::Use(item) => names.bring(&item.tree, None),
                _ => {}
            }
        }
        names
    }

    fn bring(&mut self, tree: &UseTree, module: Option<String>) {
        match tree {
            UseTree::Path(path) => {
                let first = path.ident.to_string();
                let is_here = first == "self" || first == "crate";
                let module = module.or_else(|| (!is_here).then_some(first));
                self.bring(&path.tree, module);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.bring(tree, module.clone()));
            }
            UseTree::Name(name) => self.set(name.ident.to_string(), module),
            UseTree::Rename(rename) => self.set(rename.rename.to_string(), module),
            _ => {}
        }
    }

    fn set(&mut self, name: String, module: Option<String>) {
        if let Some(module) = module {
            self.brought.insert(name, module);
        }
    }

    /// The top-level module that a name at the root refers to.
    fn home<'a>(&'a self, name: &str) -> Option<&'a String> {
        let brought = || self.modules.get(self.brought.get(name)?);
        self.modules.get(name).or_else(brought)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let source = |(path, text): &(&str, &str)| {
            Source::parse(&format!("crates/x/src/{path}"), text).unwrap()
        };
        Tree { texts: Vec::new(), sources: files.iter().map(source).collect() }
    }

    fn count(files: &[(&str, &str)]) -> usize {
        measure(&tree(files))["x"]
    }

    const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b; mod c; pub use b::{B, D as E}; use c::C;");

    #[test]
    fn arrows_down_are_no_cycle() {
        let a = "use crate::b::B; fn f(x: crate::C) {} use super::c;";
        let b = "use crate::c::C; #[cfg(test)] mod tests { use crate::a; }";
        assert_eq!(count(&[ROOT, ("a.rs", a), ("b.rs", b), ("c.rs", "struct C;")]), 0);
        let within = ("a/d.rs", "use super::super::b; use super::e; use crate::a::e as z;");
        assert_eq!(count(&[ROOT, ("a.rs", a), within, ("b.rs", b)]), 0);
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        let a = ("a.rs", "use crate::b::B;");
        for back in [
            "use crate::a;",
            "use crate::{c, a::{self}};",
            "fn f() { crate::a::g(); }",
            "fn f() { println!(\"{}\", crate::a::g()); }",
            "use super::a::A;",
            "mod d { use super::super::a; }",
            "impl crate::a::A for B {}",
            "use crate::C;",
        ] {
            let c = ("c.rs", "use crate::a::A;");
            let found = count(&[ROOT, a, ("b.rs", back), c]);
            let uses_c = back.contains("{c,") || back.contains("crate::C");
            assert_eq!(found, if uses_c { 3 } else { 2 }, "{back}");
        }
        let renamed = [ROOT, ("a.rs", "use crate::E;"), ("b/x.rs", "use crate::a;")];
        assert_eq!(count(&renamed), 2);
    }

    #[test]
    fn a_circle_of_calls_of_methods_is_found() {
        let a = ("a.rs", "use crate::b::B; impl B { fn above(&self) {} }");
        let found = |b: &str| count(&[ROOT, a, ("b.rs", b)]);
        let below = "struct B; impl B { fn below(&self) {} } ";
        for call in [
            "impl B { fn f(&self) { self.above(); } }",
            "fn f(b: &B) { b.above(); }",
            "impl D { fn f(&self) { self.b.above().below(); } }",
        ] {
            assert_eq!(found(&format!("{below}{call}")), 2, "{call}");
        }
        for other in [
            "impl B { fn f(&self) { self.below(); } }",
            "impl D { fn f(&self) { self.above(); } }",
            "#[cfg(test)] mod tests { fn f(b: &B) { b.above(); } }",
            "impl E { fn above(&self) {} } fn f(e: &E) { e.above(); }",
        ] {
            assert_eq!(found(&format!("{below}{other}")), 0, "{other}");
        }
        // A second module that defines the method leaves open which one is meant.
        assert_eq!(found("impl B { fn above(&self) {} fn f(&self) { self.above(); } }"), 0);
    }

    #[test]
    fn more_than_the_table_allows_is_told_with_the_circle() {
        let tree = tree(&[ROOT, ("a.rs", "use crate::b;"), ("b.rs", "\nuse crate::a;")]);
        let found = |most: usize| {
            let mut findings = Vec::new();
            check(&tree, &Counts::from([("x".to_owned(), most)]), &mut findings);
            findings
        };
        assert_eq!(found(2), []);
        let findings = found(1);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("a -> b, b -> a"), "{findings:?}");
        let story = story(&tree, "x");
        assert!(story.contains("b -> a  1 times, first crates/x/src/b.rs:2"), "{story}");
    }
}
