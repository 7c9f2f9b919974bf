use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::lexer::{At, Letter, Lines, Word};
use super::options::{Given, Item, given, terms};
use crate::diagnostic::Diagnostics;
use crate::export_spec::{ClientSpec, ExportSpec};
use crate::limits::{CLIENTS_MAX, DEFAULTS_MAX};
use crate::path::normal;
use crate::{Client, Location};

/// Parses the text of an exports file called `file`. It never fails: a mistake becomes a
/// diagnostic, and its line declares nothing.
pub(crate) fn parse(
    file: &Arc<str>,
    text: &[u8],
    diagnostics: &mut Diagnostics,
) -> Vec<ExportSpec> {
    let mut parser = Parser { file, diagnostics, clients: 0 };
    let mut declarations = Vec::new();
    for line in Lines::new(text) {
        match line {
            Ok(words) => declarations.extend(parser.line(&words)),
            Err((at, what)) => parser.error(at, what),
        }
        if parser.clients > CLIENTS_MAX {
            diagnostics.error(&Location::file(file), format!("more than {CLIENTS_MAX} clients"));
            break;
        }
    }
    declarations
}

struct Parser<'a> {
    file: &'a Arc<str>,
    diagnostics: &'a mut Diagnostics,
    clients: usize,
}

impl Parser<'_> {
    fn line(&mut self, words: &[Word]) -> Option<ExportSpec> {
        let (path, words) = words.split_first()?;
        let place = self.place(path.at);
        let path = self.path(path);
        if words.iter().all(is_default) {
            self.diagnostics.error(&place, "no client: expected PATH CLIENT(OPTION,...) ...");
        } else if let Some(last) = words.last().filter(|last| is_default(last)) {
            self.error(last.at, "default options with no client behind them");
        }
        self.clients += words.len();
        let specs = self.specs(words)?;
        Some(ExportSpec { place, path: path?, specs })
    }

    fn specs(&mut self, words: &[Word]) -> Option<Vec<ClientSpec>> {
        let mut specs = Vec::with_capacity(words.len());
        let (mut defaults, mut bare) = (Vec::new(), None);
        for word in words {
            if is_default(word) {
                defaults.push(self.options(word.letters.get(1..).unwrap_or_default(), word.at)?);
                bare = None;
                if defaults.len() > DEFAULTS_MAX {
                    self.error(word.at, format!("more than {DEFAULTS_MAX} lists of defaults"));
                    return None;
                }
                continue;
            }
            let spec = self.spec(word, &defaults, bare);
            bare = spec.as_ref().filter(|(_, bare)| *bare).map(|(spec, _)| &spec.client).cloned();
            specs.extend(spec.map(|(spec, _)| spec));
            if is_torn(word) {
                break;
            }
        }
        Some(specs)
    }

    fn path(&mut self, word: &Word) -> Option<PathBuf> {
        let bytes = text_of(&word.letters);
        let found = normal(OsStr::from_bytes(&bytes));
        found.map_err(|what| self.error(word.at, what)).ok()
    }

    /// Parses a client with its options; also returns whether there were none. `before` is the
    /// previous client, if that one had none.
    fn spec(
        &mut self,
        word: &Word,
        defaults: &[Vec<Given>],
        before: Option<Client>,
    ) -> Option<(ClientSpec, bool)> {
        let open = word.letters.iter().position(|letter| letter.is(b'('));
        let (name, list) = word.letters.split_at(open.unwrap_or(word.letters.len()));
        let place = self.place(word.at);
        let own = if open.is_some() { self.list(list, word.at) } else { Some(Vec::new()) };
        let client = match name {
            [] if open.is_some() => {
                self.diagnostics.warning(&place, trap(before.as_ref()));
                Some(Client::Everybody)
            }
            _ => self.client(name, &place),
        };
        let (own, client) = (own?, client?);
        let lists: Vec<&[Given]> = defaults.iter().chain([&own]).map(Vec::as_slice).collect();
        let (terms, origin) = terms(&lists, &place, self.diagnostics)?;
        Some((ClientSpec { place, client, terms, origin }, open.is_none()))
    }

    fn client(&mut self, name: &[Letter], place: &Location) -> Option<Client> {
        let found = match String::from_utf8(text_of(name)) {
            Ok(name) => Client::parse(&name),
            Err(_) => Err("a client whose name is no text".into()),
        };
        found.map_err(|what| self.diagnostics.error(place, what)).ok()
    }

    /// Parses the options in parentheses.
    fn list(&mut self, list: &[Letter], at: At) -> Option<Vec<Given>> {
        let inside = match list {
            [_, inside @ .., last] if last.is(b')') => inside,
            _ => {
                self.error(at, "an option list without its end: expected ')', no blanks before it");
                return None;
            }
        };
        if let Some(sign) = inside.iter().find(|letter| letter.is(b'(') || letter.is(b')')) {
            let client = "a parenthesis within an option list: expected a blank between clients";
            self.error(sign.at, client);
            return None;
        }
        self.options(inside, list.first().map_or(at, |first| first.at))
    }

    fn options(&mut self, list: &[Letter], at: At) -> Option<Vec<Given>> {
        if list.is_empty() {
            return Some(Vec::new());
        }
        let items: Option<Vec<Item>> =
            list.split(|letter| letter.is(b',')).map(|item| self.item(item, at)).collect();
        given(items?, self.diagnostics)
    }

    fn item(&mut self, letters: &[Letter], before: At) -> Option<Item> {
        let Some(first) = letters.first() else {
            self.error(before, "an empty option: expected a name between the commas");
            return None;
        };
        let Ok(text) = String::from_utf8(text_of(letters)) else {
            self.error(first.at, "an option that is no text");
            return None;
        };
        Some(Item::new(&text, self.place(first.at)))
    }

    fn error(&mut self, at: At, what: impl Into<String>) {
        let place = self.place(at);
        self.diagnostics.error(&place, what);
    }

    fn place(&self, (line, column): At) -> Location {
        Location { file: Arc::clone(self.file), line, column }
    }
}

/// Returns whether the word contains default options for the clients that follow.
fn is_default(word: &Word) -> bool {
    word.letters.first().is_some_and(|first| first.is(b'-'))
}

/// Returns whether an option list begins in the word and does not end in it, so that no client
/// follows.
fn is_torn(word: &Word) -> bool {
    let ends = word.letters.last().is_some_and(|last| last.is(b')'));
    !ends && word.letters.iter().any(|letter| letter.is(b'('))
}

fn text_of(letters: &[Letter]) -> Vec<u8> {
    letters.iter().map(|letter| letter.byte).collect()
}

fn trap(before: Option<&Client>) -> String {
    match before {
        Some(client) => format!(
            "a blank between {client} and its options: {client} gets the defaults and everybody \
             gets these; write {client}(...), or *(...) if that is meant"
        ),
        None => "options without a client are for everybody; write *(...) if that is meant".into(),
    }
}
