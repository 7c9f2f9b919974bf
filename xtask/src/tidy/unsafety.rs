//! `unsafe` is allowed only in the listed places, and only with a reason.

use syn::visit::{self, Visit};
use syn::{ExprUnsafe, ItemImpl, Signature};

use super::Finding;
use super::sources::{Source, Tree};

/// Lines above `unsafe` that may belong to its statement; the comment may be above them.
const STATEMENT_LINES_MAX: usize = 3;

/// Finds `unsafe` in a wrong place, or without a comment that says why it is sound.
pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        let mut places = Places { lines: Vec::new(), signatures: Vec::new() };
        places.visit_file(&source.syntax);
        let lines: Vec<&str> = source.text.lines().collect();
        for line in places.lines.iter().chain(&places.signatures) {
            check_place(source, *line, findings);
        }
        for line in places.lines.iter().filter(|line| !is_explained(&lines, **line)) {
            findings.push(Finding::new(
                (&source.path, *line),
                "`unsafe` without its reason",
                "put a comment `// SAFETY: ...` right above it",
            ));
        }
    }
}

fn check_place(source: &Source, line: usize, findings: &mut Vec<Finding>) {
    if !is_allowed(&source.path) {
        let remedy = "use a safe interface (rustix), or move it to crates/backend or \
                      crates/server/src/sys.rs";
        findings.push(Finding::new((&source.path, line), "`unsafe` here", remedy));
    }
}

fn is_allowed(path: &str) -> bool {
    path.starts_with("crates/backend/") || path.starts_with("crates/server/src/sys")
}

/// Returns whether `SAFETY:` is in the comment above a line (counted from 1) or on the line.
fn is_explained(lines: &[&str], line: usize) -> bool {
    let mut others = 0;
    for text in lines[..line.min(lines.len())].iter().rev() {
        if text.contains("SAFETY:") {
            return true;
        }
        let text = text.trim();
        if !text.starts_with("//") && !text.starts_with("#[") {
            others += 1;
        }
        if others > STATEMENT_LINES_MAX || text.is_empty() {
            return false;
        }
    }
    false
}

/// The lines with `unsafe`: blocks and impls, which need a reason, and signatures.
struct Places {
    lines: Vec<usize>,
    signatures: Vec<usize>,
}

impl<'a> Visit<'a> for Places {
    fn visit_expr_unsafe(&mut self, block: &'a ExprUnsafe) {
        self.lines.push(block.unsafe_token.span.start().line);
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_item_impl(&mut self, block: &'a ItemImpl) {
        self.lines.extend(block.unsafety.map(|token| token.span.start().line));
        visit::visit_item_impl(self, block);
    }

    fn visit_signature(&mut self, signature: &'a Signature) {
        if let syn::Safety::Unsafe(token) = &signature.safety {
            self.signatures.push(token.span.start().line);
        }
        visit::visit_signature(self, signature);
    }
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

    #[test]
    fn explained_and_in_its_place_it_passes() {
        let text = "fn f() {\n    // SAFETY: it is.\n    let a =\n        unsafe { g() };\n}\n\
                    // SAFETY: so is this.\nunsafe impl Send for A {}\n";
        assert_eq!(found("crates/backend/src/a.rs", text), []);
        assert_eq!(found("crates/server/src/sys.rs", text), []);
    }

    #[test]
    fn without_reason_or_elsewhere_it_is_found() {
        let text = "fn f() {\n\n    unsafe { g() }\n}\n";
        assert_eq!(found("crates/backend/src/a.rs", text)[0].line, 3);
        let text = "fn f() {\n    // SAFETY: it is.\n    unsafe { g() }\n}\nunsafe fn h() {}\n";
        assert_eq!(found("crates/rpc/src/a.rs", text).len(), 2);
    }
}
