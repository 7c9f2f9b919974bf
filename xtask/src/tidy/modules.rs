//! Files that no module includes, files that only tests include, and the introduction of a crate.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, Item, ItemMod, Lit, Meta};

use super::Finding;
use super::sources::{Source, Tree};

/// Follows the modules of every crate from its roots; marks the files that only tests include.
pub(super) fn check(tree: &mut Tree, findings: &mut Vec<Finding>) {
    let reached = reach(tree);
    for source in &mut tree.sources {
        match reached.get(&source.path) {
            Some(is_test) => source.is_test |= is_test,
            None => findings.push(Finding::new(
                (&source.path, 1),
                "no module includes this file",
                "declare it with `mod`, or remove it",
            )),
        }
    }
    let paths: HashSet<&str> = tree.sources.iter().map(|source| source.path.as_str()).collect();
    let roots = tree.sources.iter().filter(|source| introduces(&source.path, &paths));
    roots.for_each(|source| check_introduction(source, findings));
}

/// All files that are compiled, and whether for tests only. Files that tests include come last: a
/// file that both include counts as production code.
fn reach(tree: &Tree) -> HashMap<String, bool> {
    let by_path: HashMap<&str, &Source> =
        tree.sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut reached = HashMap::new();
    let mut open: Vec<&Source> = tree.sources.iter().filter(|file| is_root(&file.path)).collect();
    let mut tests = Vec::new();
    while let Some((source, is_test)) = next(&mut open, &mut tests) {
        if reached.contains_key(&source.path) {
            continue;
        }
        reached.insert(source.path.clone(), is_test);
        for (path, is_test) in children(source, is_test) {
            let list = if is_test { &mut tests } else { &mut open };
            list.extend(by_path.get(path.as_str()));
        }
    }
    reached
}

fn next<'a>(open: &mut Vec<&'a Source>, tests: &mut Vec<&'a Source>) -> Option<(&'a Source, bool)> {
    open.pop().map(|source| (source, false)).or_else(|| tests.pop().map(|source| (source, true)))
}

/// Returns whether the file is the root of a crate.
fn is_root(path: &str) -> bool {
    let path = Path::new(path);
    let file = path.file_name().unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let above = path.parent().and_then(Path::parent).and_then(Path::file_name);
    let holds_roots = |folder: &OsStr| {
        let folders = ["tests", "benches", "examples", "bin", "fuzz_targets"];
        folders.iter().any(|name| folder == *name)
    };
    let named = file == "build.rs" || (folder == "src" && (file == "lib.rs" || file == "main.rs"));
    named || holds_roots(folder) || (file == "main.rs" && above.is_some_and(holds_roots))
}

/// Returns the files that a source may include, and for each whether only tests include it.
fn children(source: &Source, is_test: bool) -> Vec<(String, bool)> {
    let path = Path::new(&source.path);
    let stem = path.file_stem().unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    let owns_folder = is_root(&source.path) || stem == "mod";
    let base = if owns_folder { folder.to_path_buf() } else { folder.join(stem) };
    let mut found = Vec::new();
    declared(&source.syntax.items, &base, is_test, &mut found);
    found
}

fn declared(items: &[Item], base: &Path, is_test: bool, found: &mut Vec<(String, bool)>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let is_test = is_test || is_test_only(&module.attrs);
        let name = module.ident.to_string();
        match &module.content {
            Some((_, items)) => declared(items, &base.join(name), is_test, found),
            None => found.extend(files_of(module, base).map(|file| (file, is_test))),
        }
    }
}

/// The paths that the module's file may have.
fn files_of(module: &ItemMod, base: &Path) -> impl Iterator<Item = String> {
    let name = module.ident.to_string();
    let files: Vec<PathBuf> = match path_attribute(&module.attrs) {
        Some(path) => vec![base.join(&path), base.parent().unwrap_or(base).join(&path)],
        None => vec![base.join(format!("{name}.rs")), base.join(name).join("mod.rs")],
    };
    files.into_iter().map(|file| file.to_string_lossy().into_owned())
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(literal)
}

/// The text of `#[name = "text"]`.
fn literal(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(value) = &pair.value else { return None };
    let Lit::Str(text) = &value.lit else { return None };
    Some(text.value())
}

/// Returns whether the attributes include `#[test]`, `#[cfg(test)]` or a `cfg` that demands it.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
        let condition = list.tokens.to_string();
        let demands = condition == "test" || condition.starts_with("all (test");
        attribute.path().is_ident("cfg") && demands
    })
}

/// Returns whether the file is the first one of a crate: its library, or its program if it has
/// none.
fn introduces(path: &str, paths: &HashSet<&str>) -> bool {
    let main = path.strip_suffix("/src/main.rs");
    let alone = main.is_some_and(|folder| !paths.contains(format!("{folder}/src/lib.rs").as_str()));
    path.starts_with("crates/") && (path.ends_with("/src/lib.rs") || alone)
}

/// Checks that a crate's first lines say what it answers and what it may not know.
fn check_introduction(source: &Source, findings: &mut Vec<Finding>) {
    let lines = source.text.lines().take_while(|line| line.starts_with("//!"));
    let introduction = lines.collect::<Vec<_>>().join("\n");
    for heading in ["**Answers:**", "**May not know:**"] {
        if !introduction.contains(heading) {
            let what = format!("the crate's documentation has no {heading}");
            let remedy = "open the file with `//!` lines that say it, like crates/xdr/src/lib.rs";
            findings.push(Finding::new((&source.path, 1), what, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let sources = files.iter().map(|(path, text)| Source::parse(path, text).unwrap());
        Tree { texts: Vec::new(), sources: sources.collect() }
    }

    #[test]
    fn a_file_nobody_includes_is_found() {
        let mut tree = tree(&[
            ("xtask/src/main.rs", "mod a; #[cfg(test)] mod b; mod c { mod d; }"),
            ("xtask/src/a.rs", "mod e;"),
            ("xtask/src/a/e.rs", ""),
            ("xtask/src/b.rs", ""),
            ("xtask/src/c/d.rs", ""),
            ("xtask/src/lost.rs", ""),
        ]);
        let mut findings = Vec::new();
        check(&mut tree, &mut findings);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].path, "xtask/src/lost.rs");
        let tests: Vec<_> = tree.sources.iter().filter(|source| source.is_test).collect();
        assert_eq!(tests.len(), 1);
        assert_eq!(tests[0].path, "xtask/src/b.rs");
    }

    #[test]
    fn a_crate_without_introduction_is_found() {
        let whole = "//! **Answers:** what.\n//! **May not know:** who.\n";
        let mut tree = tree(&[
            ("crates/a/src/lib.rs", "//! **Answers:** what.\n"),
            ("crates/b/src/lib.rs", whole),
            ("crates/b/src/main.rs", ""),
        ]);
        let mut findings = Vec::new();
        check(&mut tree, &mut findings);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].what.contains("May not know"));
    }
}
