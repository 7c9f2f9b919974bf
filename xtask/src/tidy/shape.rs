//! Lengths of functions and files, and numbers of parameters.

use std::fmt;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, FnArg, ImplItemFn, ItemFn, ItemMod, Signature, TraitItemFn};

use super::Finding;
use super::modules::is_test_only;
use super::sources::{Source, Tree};

/// Half of the functions must have at most this length, in lines between the braces.
const LINES_MEDIAN_MAX: usize = 10;

/// Nine in ten functions must have at most this length.
const LINES_P90_MAX: usize = 35;

/// No function, tests included, may be longer.
const LINES_MAX: usize = 70;

/// No file may be longer.
const FILE_LINES_MAX: usize = 600;

/// Nineteen in twenty functions must take at most this many parameters, not counting `self`.
const PARAMETERS_P95_MAX: usize = 4;

/// No function may take more.
const PARAMETERS_MAX: usize = 7;

/// Functions that may exceed [`LINES_MAX`]: file, function, and the reason not to split it.
const LONG: &[(&str, &str, &str)] = &[];

/// The measured numbers of production code.
pub(super) struct Numbers {
    functions: usize,
    median: usize,
    p90: usize,
    longest: usize,
    parameters_p95: usize,
    files: usize,
    longest_file: usize,
}

impl fmt::Display for Numbers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} functions: lines median {}, p90 {}, longest {}; parameters p95 {}; \
             {} files, longest {} lines",
            self.functions,
            self.median,
            self.p90,
            self.longest,
            self.parameters_p95,
            self.files,
            self.longest_file
        )
    }
}

/// Files whose functions implement a trait of another crate, which determines the parameters.
const DICTATED: &[(&str, &str)] =
    &[("crates/fuse/src/transport/filesystem.rs", "fuser::Filesystem")];

/// Measures every function and file.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) -> Numbers {
    let mut production = Vec::new();
    let mut named = Vec::new();
    for source in &tree.sources {
        check_file(source, findings);
        for function in functions(source) {
            check_function(source, &function, findings);
            named.push((source.path.clone(), function.name.clone(), function.lines));
            if !function.is_test {
                production.push(function);
            }
        }
    }
    check_exceptions(&named, findings);
    let numbers = measure(tree, &production);
    check_numbers(&numbers, findings);
    numbers
}

fn check_file(source: &Source, findings: &mut Vec<Finding>) {
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        let remedy = format!("one idea a file, {FILE_LINES_MAX} lines at most; move tests first");
        findings.push(Finding::new((&source.path, 1), format!("{lines} lines"), remedy));
    }
}

fn check_function(source: &Source, function: &Function, findings: &mut Vec<Finding>) {
    let at = (source.path.as_str(), function.line);
    let name = &function.name;
    if function.lines > LINES_MAX && !is_excepted(&source.path, name) {
        let what = format!("function `{name}` has {} lines", function.lines);
        let remedy = format!("split it ({LINES_MAX} at most), or list it in {TABLE} with a reason");
        findings.push(Finding::new(at, what, remedy));
    }
    if function.parameters > PARAMETERS_MAX {
        let what = format!("function `{name}` takes {} parameters", function.parameters);
        let remedy = format!("give those that belong together a type ({PARAMETERS_MAX} at most)");
        findings.push(Finding::new(at, what, remedy));
    }
}

const TABLE: &str = "xtask/src/tidy/shape.rs";

fn is_excepted(path: &str, name: &str) -> bool {
    LONG.iter().any(|(file, function, _)| *file == path && *function == name)
}

/// An exception that is no longer needed must be removed.
fn check_exceptions(named: &[(String, String, usize)], findings: &mut Vec<Finding>) {
    for (file, function, _) in LONG {
        let needed = |(path, name, lines): &(String, String, usize)| {
            path == file && name == function && *lines > LINES_MAX
        };
        if !named.iter().any(needed) {
            let what = format!("`{function}` of {file} is not over {LINES_MAX} lines");
            findings.push(Finding::new((TABLE, 1), what, "take it off the list"));
        }
    }
}

fn measure(tree: &Tree, production: &[Function]) -> Numbers {
    let mut lines: Vec<usize> = production.iter().map(|function| function.lines).collect();
    let mut parameters: Vec<usize> = production.iter().map(|f| f.parameters).collect();
    lines.sort_unstable();
    parameters.sort_unstable();
    let files = tree.sources.iter().map(|source| source.text.lines().count());
    Numbers {
        functions: production.len(),
        median: rank(&lines, 50),
        p90: rank(&lines, 90),
        longest: rank(&lines, 100),
        parameters_p95: rank(&parameters, 95),
        files: tree.sources.len(),
        longest_file: files.max().unwrap_or(0),
    }
}

/// The smallest value that `percent` of the sorted values do not exceed.
fn rank(sorted: &[usize], percent: usize) -> usize {
    let count = (sorted.len() * percent).div_ceil(100);
    sorted.get(count.saturating_sub(1)).copied().unwrap_or(0)
}

fn check_numbers(numbers: &Numbers, findings: &mut Vec<Finding>) {
    let limits = [
        ("median of lines a function", numbers.median, LINES_MEDIAN_MAX),
        ("p90 of lines a function", numbers.p90, LINES_P90_MAX),
        ("p95 of parameters a function", numbers.parameters_p95, PARAMETERS_P95_MAX),
    ];
    for (name, value, limit) in limits {
        if value > limit {
            let what = format!("{name} is {value}");
            findings.push(Finding::new(("Cargo.toml", 1), what, format!("{limit} at most")));
        }
    }
}

/// A measured function.
struct Function {
    name: String,
    line: usize,
    lines: usize,
    parameters: usize,
    is_test: bool,
}

fn functions(source: &Source) -> Vec<Function> {
    let mut functions = Functions { found: Vec::new(), is_test: source.is_test };
    functions.visit_file(&source.syntax);
    if DICTATED.iter().any(|(file, _)| *file == source.path) {
        functions.found.iter_mut().for_each(|function| function.parameters = 0);
    }
    functions.found
}

struct Functions {
    found: Vec<Function>,
    is_test: bool,
}

impl Functions {
    /// Measures a function, then the functions inside it.
    fn add(&mut self, signature: &Signature, body: &Block, is_test: bool) {
        self.found.push(Function {
            name: signature.ident.to_string(),
            line: signature.ident.span().start().line,
            lines: lines_between(body.span()),
            parameters: parameters(signature),
            is_test: self.is_test || is_test,
        });
        let before = self.is_test;
        self.is_test |= is_test;
        visit::visit_block(self, body);
        self.is_test = before;
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        let before = self.is_test;
        self.is_test |= is_test_only(&module.attrs);
        visit::visit_item_mod(self, module);
        self.is_test = before;
    }

    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        self.add(&function.sig, &function.block, is_test_only(&function.attrs));
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        self.add(&function.sig, &function.block, is_test_only(&function.attrs));
    }

    fn visit_trait_item_fn(&mut self, function: &'a TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body, is_test_only(&function.attrs));
        }
    }
}

/// The number of lines between the braces; a body on one line counts as one.
fn lines_between(body: Span) -> usize {
    (body.end().line - body.start().line).saturating_sub(1).max(1)
}

fn parameters(signature: &Signature) -> usize {
    signature.inputs.iter().filter(|input| !matches!(input, FnArg::Receiver(_))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<Finding> {
        let sources = vec![Source::parse(path, text).unwrap()];
        let mut findings = Vec::new();
        check(&Tree { texts: Vec::new(), sources }, &mut findings);
        findings
    }

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines))
    }

    #[test]
    fn short_passes_and_long_is_found() {
        let short = "fn g() {}\n".repeat(12);
        assert_eq!(found("xtask/src/a.rs", &(short.clone() + &function(70))), []);
        let findings = found("xtask/src/a.rs", &(short.clone() + &function(71)));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].line, 13);
        assert_eq!(found("xtask/tests/a.rs", &(short + &function(71))).len(), 1);
    }

    #[test]
    fn medians_are_of_production_code() {
        let findings = found("xtask/src/a.rs", &function(36));
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert_eq!(found("xtask/tests/a.rs", &function(36)), []);
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(36));
        assert_eq!(found("xtask/src/a.rs", &test), []);
    }

    #[test]
    fn parameters_are_counted_without_self() {
        let few = "fn g() {}\n".repeat(20);
        let seven = "impl A { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) {} }";
        assert_eq!(found("xtask/src/a.rs", &(few.clone() + seven)), []);
        let eight = seven.replace("&self", "z: u8");
        assert_eq!(found("xtask/src/a.rs", &(few + &eight)).len(), 1);
        assert_eq!(found("xtask/src/a.rs", "fn g(a: u8, b: u8, c: u8, d: u8, e: u8) {}").len(), 1);
    }

    #[test]
    fn parameters_that_another_crate_gives_are_not_counted() {
        let many = "fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8) {}";
        assert_eq!(found(DICTATED[0].0, many), []);
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(found("xtask/src/a.rs", &"// a\n".repeat(600)), []);
        assert_eq!(found("xtask/src/a.rs", &"// a\n".repeat(601)).len(), 1);
    }
}
