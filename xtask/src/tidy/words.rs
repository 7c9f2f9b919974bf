//! Words: comments and prose that begin with a relative clause instead of a sentence, private words
//! of this project, and names that several types share.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::Item;
use syn::visit::{self, Visit};

use super::Finding;
use super::comments::{Block, blocks_of};
use super::sources::Tree;
use super::tables::{Counts, PATH, Tables, allowed};

/// Words that no identifier may contain; each has a plain equivalent of the field.
const BANNED: &[(&str, &str)] = &[
    ("apologize", "say what is replied: reply_error"),
    ("attentive", "callback_layer"),
    ("crew", "thread_pool"),
    ("deed", "operation"),
    ("desk", "event_loop, sequencing"),
    ("dice", "rng"),
    ("errand", "rpc_client, request"),
    ("farewell", "close_reason"),
    ("greet", "accept, connect"),
    ("grounds", "reason"),
    ("house", "workspace, crates"),
    ("keepsake", "saved state, by its name"),
    ("keeper", "state_service"),
    ("messenger", "nlm_replies"),
    ("outbox", "send_queue"),
    ("reception", "acceptor"),
    ("roster", "client_admin"),
    ("steward", "control_handler"),
    ("tire", "time out, slow down"),
    ("tongue", "protocol, version"),
    ("tray", "handoff"),
];

/// First words of a name that is a relative clause.
const RELATIVES: &[&str] =
    &["how", "what", "whatever", "whether", "which", "who", "whoever", "whom", "whose"];

/// Type names that every crate may have.
const ORDINARY: &[&str] = &["Arguments", "Command", "Error", "Options", "Result", "Settings"];

/// Most types that may share a name without a line in the table.
const SHARED_MAX: usize = 2;

/// Counts the items of the tables.
pub(super) fn measure(tree: &Tree, tables: &mut Tables) {
    for (path, _) in headless(tree) {
        *tables.headless.entry(crate_of(path)).or_default() += 1;
    }
    for (word, places) in banned(tree) {
        tables.words.insert(word.to_owned(), places.len());
    }
    let shared = types(tree).into_iter().map(|(name, places)| (name, places.len()));
    tables.types.extend(shared.filter(|(_, count)| *count > SHARED_MAX));
}

/// Finds counts that exceed the tables.
pub(super) fn check(tree: &Tree, tables: &Tables, findings: &mut Vec<Finding>) {
    check_comments(tree, &tables.headless, findings);
    check_names(tree, findings);
    for (word, places) in banned(tree) {
        let most = allowed(&tables.words, word);
        let plain =
            BANNED.iter().find(|(banned, _)| *banned == word).map_or("", |(_, plain)| plain);
        let remedy = format!("take the word of the field ({plain})");
        check_places(&format!("`{word}` in a name"), &places, most, &remedy, findings);
    }
    for (name, places) in types(tree) {
        let most = allowed(&tables.types, &name).max(SHARED_MAX);
        let remedy = "one word for one idea: name it after its content";
        check_places(&format!("type `{name}`"), &places, most, remedy, findings);
    }
}

/// Adds one finding, at the last place, if there are too many places.
fn check_places(
    what: &str,
    places: &[(&str, usize)],
    most: usize,
    remedy: &str,
    findings: &mut Vec<Finding>,
) {
    if let Some(last) = places.last().filter(|_| places.len() > most) {
        let what = format!("{what}: {} times, {most} allowed by {PATH}", places.len());
        findings.push(Finding::new(*last, what, remedy));
    }
}

fn check_comments(tree: &Tree, table: &Counts, findings: &mut Vec<Finding>) {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for place in headless(tree) {
        places.entry(crate_of(place.0)).or_default().push(place);
    }
    for (name, places) in places {
        let remedy =
            "begin with a subject or a verb; `cargo xtask comments --headless --under ...`";
        let what = format!("headless comments in `{name}`");
        check_places(&what, &places, allowed(table, &name), remedy, findings);
    }
}

/// Finds names of three words or more that begin with a relative clause: sentences without a
/// subject, which may be names of tests.
fn check_names(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        let Ok(tokens) = source.text.parse::<TokenStream>() else { continue };
        each_identifier(tokens, &mut |name, line| {
            let mut parts = name.split('_').filter(|part| !part.is_empty());
            let is_clause = parts.next().is_some_and(|first| RELATIVES.contains(&first));
            if is_clause && parts.count() > 1 {
                let what = format!("`{name}` has no subject");
                let remedy = "name the thing that it is about: a_closed_pipe_is_not_an_error";
                findings.push(Finding::new((source.path.as_str(), line), what, remedy));
            }
        });
    }
}

/// Returns `state` for a file below `crates/state`, otherwise the first folder.
pub(super) fn crate_of(path: &str) -> String {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    path.split('/').next().unwrap_or_default().to_owned()
}

/// The places of headless comments in sources and scripts, and of headless prose in documents.
fn headless(tree: &Tree) -> impl Iterator<Item = (&str, usize)> {
    let sources = tree.sources.iter().map(|source| (source.path.as_str(), source.text.as_str()));
    let others = tree.texts.iter().map(|text| (text.path.as_str(), text.text.as_str()));
    let others = others.filter(|(path, _)| !path.ends_with(".rs"));
    sources.chain(others).flat_map(|(path, text)| {
        let blocks = blocks_of(path, text).into_iter().filter(Block::is_headless);
        blocks.map(move |block| (path, block.line))
    })
}

/// The lines with banned words in identifiers, by word.
fn banned(tree: &Tree) -> BTreeMap<&'static str, Vec<(&str, usize)>> {
    let mut found: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for source in &tree.sources {
        let Ok(tokens) = source.text.parse::<TokenStream>() else { continue };
        each_identifier(tokens, &mut |name, line| {
            for part in parts(name) {
                let is_it = |word: &str| part == word || part.strip_suffix('s') == Some(word);
                if let Some((word, _)) = BANNED.iter().find(|(word, _)| is_it(word)) {
                    found.entry(word).or_default().push((&source.path, line));
                }
            }
        });
    }
    found
}

fn each_identifier(tokens: TokenStream, note: &mut impl FnMut(&str, usize)) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => note(&name.to_string(), name.span().start().line),
            TokenTree::Group(group) => each_identifier(group.stream(), note),
            _ => {}
        }
    }
}

/// The words of an identifier in lower case: `file` and `handle` for `file_handle` and
/// `FileHandle`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        let begins = c == '_' || (c.is_uppercase() && before.is_lowercase());
        if begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts
}

/// The definitions of types by name, outside tests; ordinary names are left out.
fn types(tree: &Tree) -> BTreeMap<String, Vec<(&str, usize)>> {
    let mut found: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| !source.is_test) {
        let mut types = Types(Vec::new());
        types.visit_file(&source.syntax);
        for name in types.0 {
            let line = name.span().start().line;
            found.entry(name.to_string()).or_default().push((&source.path, line));
        }
    }
    found.retain(|name, _| !ORDINARY.contains(&name.as_str()));
    found
}

struct Types(Vec<syn::Ident>);

impl<'a> Visit<'a> for Types {
    fn visit_item(&mut self, item: &'a Item) {
        match item {
            Item::Mod(module) if super::modules::is_test_only(&module.attrs) => return,
            Item::Struct(item) => self.0.push(item.ident.clone()),
            Item::Enum(item) => self.0.push(item.ident.clone()),
            Item::Trait(item) => self.0.push(item.ident.clone()),
            Item::Type(item) => self.0.push(item.ident.clone()),
            Item::Union(item) => self.0.push(item.ident.clone()),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::{Source, Text};
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let sources = files.iter().map(|(path, text)| Source::parse(path, text).unwrap());
        Tree { texts: Vec::new(), sources: sources.collect() }
    }

    fn count(tree: &Tree, tables: &Tables) -> usize {
        let mut findings = Vec::new();
        check(tree, tables, &mut findings);
        findings.len()
    }

    #[test]
    fn one_headless_comment_more_than_allowed_is_found() {
        let tree = tree(&[("crates/a/src/b.rs", "/// Who reads.\nfn f() {}\n// What is held.\n")]);
        let mut tables = Tables::default();
        assert_eq!(count(&tree, &tables), 1);
        measure(&tree, &mut tables);
        assert_eq!(tables.headless["a"], 2);
        assert_eq!(count(&tree, &tables), 0);
        tables.headless.insert("a".into(), 1);
        assert_eq!(count(&tree, &tables), 1);
    }

    #[test]
    fn headless_prose_and_comments_of_scripts_are_found() {
        let count = |path: &str, text: &str| {
            let texts = vec![Text { path: path.into(), text: text.into() }];
            count(&Tree { texts, sources: Vec::new() }, &Tables::default())
        };
        assert_eq!(count("docs/a.md", "# Title\n\nIt locks.\nWho waits is told.\n"), 1);
        for script in ["crates/a/tests/b.py", "packaging/b.sh", "Cargo.toml"] {
            assert_eq!(count(script, "# Who reads.\nx = 1\n"), 1, "{script}");
        }
        assert_eq!(count("a.txt", "# Who reads.\n"), 0);
    }

    #[test]
    fn a_banned_word_in_a_name_is_found() {
        let banned = format!("fn {}_all() {{ let retired = entire; }}", BANNED[0].0);
        assert_eq!(count(&tree(&[("crates/a/src/b.rs", &banned)]), &Tables::default()), 1);
        for good in ["fn f() { let retired = entire_thing; }", "// the crew of a ship\n"] {
            assert_eq!(count(&tree(&[("crates/a/src/b.rs", good)]), &Tables::default()), 0);
        }
        assert_eq!(parts("HouseKeepers"), ["house", "keepers"]);
        assert_eq!(parts("SAYS_NOTHING"), ["says", "nothing"]);
    }

    #[test]
    fn a_name_that_begins_with_a_relative_clause_is_found() {
        let count = |text: &str| count(&tree(&[("crates/a/src/b.rs", text)]), &Tables::default());
        let clause = ["who_", "waits_is_told"].concat();
        assert_eq!(count(&format!("fn {clause}() {{}} p! {{ fn {clause}() {{}} }}")), 2);
        assert_eq!(count("fn who_waits() { let whole_files_are = what; } fn a_who_b_c() {}"), 0);
    }

    #[test]
    fn a_third_type_of_one_name_is_found_and_ordinary_names_are_not() {
        let two = ("crates/a/src/b.rs", "struct Place; mod c { enum Place {} }");
        let test = ("crates/a/src/d.rs", "#[cfg(test)] mod tests { struct Place; }");
        assert_eq!(count(&tree(&[two, test]), &Tables::default()), 0);
        let third = ("crates/e/src/f.rs", "type Place = u8;");
        assert_eq!(count(&tree(&[two, third]), &Tables::default()), 1);
        let three = "struct Error; mod a { struct Error; } mod b { struct Error; }";
        assert_eq!(count(&tree(&[("crates/a/src/b.rs", three)]), &Tables::default()), 0);
    }
}
