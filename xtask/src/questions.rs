//! The table "Where it is decided" of ARCHITECTURE.md: questions, at most three files for each, and
//! the functions in these files that decide. The test fails if one of them does not exist.

use std::path::Path;

use syn::visit::{self, Visit};

/// The heading of the table.
const HEADING: &str = "## Where it is decided";

/// Most files that answer one question.
const FILES_MAX: usize = 3;

/// A question, and its answer: files, and a function in each.
struct Row {
    question: String,
    answer: Vec<(String, String)>,
}

/// The rows of the table. Each answer is `` `FILE` `FUNCTION` ``; several answers are separated by
/// commas.
fn rows(document: &str) -> Vec<Row> {
    let section = document.split_once(HEADING).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    lines
        .filter_map(|line| {
            let (question, answer) = line.trim_matches('|').split_once('|')?;
            let names: Vec<&str> = answer.split('`').skip(1).step_by(2).collect();
            let pairs = names.chunks(2).filter_map(|pair| match pair {
                [file, function] => Some((file.to_string(), function.to_string())),
                _ => None,
            });
            Some(Row { question: question.trim().to_owned(), answer: pairs.collect() })
        })
        .collect()
}

/// The faults of a row; `read` reads a file of the checkout.
fn faults(row: &Row, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let Row { question, answer } = row;
    let mut faults = Vec::new();
    if answer.is_empty() || answer.len() > FILES_MAX {
        faults.push(format!("{question}: {} files, 1 to {FILES_MAX} wanted", answer.len()));
    }
    for (file, function) in answer {
        match read(file) {
            None => faults.push(format!("{question}: there is no {file}")),
            Some(text) if !functions(&text).contains(function) => {
                faults.push(format!("{question}: {file} has no function {function}"));
            }
            Some(_) => {}
        }
    }
    faults
}

/// The functions of a source: `f`, and `A::f` for those of a type or trait.
fn functions(text: &str) -> Vec<String> {
    let mut names = Functions { owner: None, found: Vec::new() };
    if let Ok(file) = syn::parse_file(text) {
        names.visit_file(&file);
    }
    names.found
}

struct Functions {
    owner: Option<String>,
    found: Vec<String>,
}

impl Functions {
    fn add(&mut self, name: &syn::Ident) {
        let owner = self.owner.as_ref().map(|owner| format!("{owner}::{name}"));
        self.found.push(owner.unwrap_or_else(|| name.to_string()));
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
        if let syn::Type::Path(path) = &*block.self_ty {
            self.owner = path.path.segments.last().map(|last| last.ident.to_string());
        }
        visit::visit_item_impl(self, block);
        self.owner = None;
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.add(&function.sig.ident);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.add(&function.sig.ident);
    }
}

#[test]
fn the_files_and_functions_of_the_ten_questions_exist() {
    let root = crate::root();
    let read = |path: &Path| std::fs::read_to_string(root.join(path)).ok();
    let rows = rows(&read(Path::new("ARCHITECTURE.md")).unwrap());
    assert!(rows.len() >= 10, "{} questions, ten wanted", rows.len());
    let faults: Vec<String> =
        rows.iter().flat_map(|row| faults(row, |file| read(Path::new(file)))).collect();
    assert!(faults.is_empty(), "correct the table in ARCHITECTURE.md:\n{}", faults.join("\n"));
}

#[test]
fn a_question_without_its_function_is_found() {
    let table = format!(
        "{HEADING}\n\n| question | answer |\n|---|---|\n| a lock | `a.rs` `lock`, `b.rs` `B::f` |\n\
         | none | nothing |\n\n## Next\n\n| other | `c.rs` `f` |\n"
    );
    let rows = rows(&table);
    assert_eq!(rows.len(), 2);
    let read = |file: &str| match file {
        "a.rs" => Some("fn lock() {}".to_owned()),
        "b.rs" => Some("struct B; impl B { fn f() {} }".to_owned()),
        _ => None,
    };
    assert_eq!(faults(&rows[0], read), Vec::<String>::new());
    assert_eq!(faults(&rows[1], read).len(), 1);
    assert_eq!(faults(&rows[0], |_| Some("fn f() {}".to_owned())).len(), 2);
    assert_eq!(faults(&rows[0], |_| None).len(), 2);
}
