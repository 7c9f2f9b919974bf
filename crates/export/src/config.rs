use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use crate::exports::options::{Given, Item, given, terms};
use crate::finding::Findings;
use crate::limits::CLIENTS_MAX;
use crate::offer::{Declaration, Offer};
use crate::path::normal;
use crate::{Client, Place};

/// How the server runs, where the configuration says so (`[server]`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Which addresses are listened on.
    pub listen: Option<Vec<IpAddr>>,
    /// At which TCP port.
    pub port: Option<u16>,
    /// How many workers there are.
    pub threads: Option<usize>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Where what must survive a restart is kept.
    pub state_dir: Option<PathBuf>,
    /// What is logged: `error`, `warn`, `info`, `debug`, `trace`, or by component.
    pub log_level: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    server: ServerSettings,
    #[serde(default)]
    export: Vec<ExportTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportTable {
    path: Spanned<String>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
    clients: Vec<ClientTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientTable {
    client: Spanned<String>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
}

/// Reads the text of a TOML file called `file`. Total: whatever is wrong is a finding.
pub(crate) fn parse(
    file: &Arc<str>,
    text: &[u8],
    findings: &mut Findings,
) -> (ServerSettings, Vec<Declaration>) {
    let mut reader = Reader { file, text, findings };
    let document = std::str::from_utf8(text)
        .map_err(|error| (error.valid_up_to()..text.len(), "no UTF-8".to_owned()))
        .and_then(|text| {
            toml::from_str::<Document>(text)
                .map_err(|error| (error.span().unwrap_or_default(), error.message().to_owned()))
        });
    match document {
        Ok(document) => (document.server, reader.exports(document.export)),
        Err((span, what)) => {
            reader.error(&span, what);
            Default::default()
        }
    }
}

struct Reader<'a> {
    file: &'a Arc<str>,
    text: &'a [u8],
    findings: &'a mut Findings,
}

impl Reader<'_> {
    fn exports(&mut self, tables: Vec<ExportTable>) -> Vec<Declaration> {
        if tables.iter().map(|table| table.clients.len()).sum::<usize>() > CLIENTS_MAX {
            let place = Place::file(self.file);
            self.findings.error(&place, format!("more than {CLIENTS_MAX} clients"));
            return Vec::new();
        }
        tables.into_iter().filter_map(|table| self.export(table)).collect()
    }

    fn export(&mut self, table: ExportTable) -> Option<Declaration> {
        let span = table.path.span();
        if table.clients.is_empty() {
            self.error(&span, "no client: expected clients = [{ client = \"...\" }]");
        }
        let path = normal(OsStr::new(table.path.get_ref()));
        let path = path.map_err(|what| self.error(&span, what)).ok();
        let defaults = self.options(&table.options)?;
        let offers =
            table.clients.iter().filter_map(|client| self.offer(client, &defaults)).collect();
        Some(Declaration { place: self.place(&span), path: path?, offers })
    }

    fn offer(&mut self, table: &ClientTable, defaults: &[Given]) -> Option<Offer> {
        let span = table.client.span();
        let client = Client::parse(table.client.get_ref());
        let client = client.map_err(|what| self.error(&span, what)).ok();
        let own = self.options(&table.options)?;
        let place = self.place(&span);
        let (terms, origin) = terms(&[defaults, &own], &place, self.findings)?;
        Some(Offer { place, client: client?, terms, origin })
    }

    fn options(&mut self, options: &[Spanned<String>]) -> Option<Vec<Given>> {
        let item =
            |option: &Spanned<String>| Item::new(option.get_ref(), self.place(&option.span()));
        let items = options.iter().map(item).collect();
        given(items, self.findings)
    }

    fn error(&mut self, span: &Range<usize>, what: impl Into<String>) {
        let place = self.place(span);
        self.findings.error(&place, what);
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Place { file: Arc::clone(self.file), line: line as u32, column: column as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "(\\[\\[?(export|server)\\]\\]?|path|clients|client|options|=|\\[|\\]|\
                    \\{|\\}|,|\"|/a|rw|1|\n| |.)*",
        ) {
            read(&text);
        }
    }

    fn read(text: &str) -> (ServerSettings, Vec<Declaration>, Vec<String>) {
        let mut findings = Findings::default();
        let (server, exports) = parse(&"t.toml".into(), text.as_bytes(), &mut findings);
        (server, exports, findings.sorted().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn both_forms_declare_the_same() {
        let toml = "[server]\nport = 2050\nlisten = [\"::1\"]\n\n[[export]]\npath = \"/srv/a b\"\n\
                    options = [\"rw\", \"sec=sys:none\"]\nclients = [\n { client = \"10.0.0.0/8\" \
                    },\n\
                    { client = \"*\", options = [\"ro\", \"anonuid=7\"] },\n]\n";
        let (server, exports, found) = read(toml);
        assert_eq!((server.port, found), (Some(2050), vec![]));
        let line = b"/srv/a\\040b -rw,sec=sys:none 10.0.0.0/8 *(ro,anonuid=7)";
        let mut findings = Findings::default();
        let expected = crate::exports::parse(&"exports".into(), line, &mut findings);
        let plain = |declarations: &[Declaration]| -> Vec<_> {
            let offer = |offer: &Offer| (offer.client.clone(), offer.terms.clone());
            declarations
                .iter()
                .map(|d| (d.path.clone(), d.offers.iter().map(offer).collect::<Vec<_>>()))
                .collect()
        };
        assert_eq!(plain(&exports), plain(&expected));
        assert_eq!(exports[0].offers.len(), 2);
    }

    #[test]
    fn errors_have_line_and_column() {
        for (text, expected) in [
            ("[server]\nprot = 1", "t.toml:2:1: unknown field `prot`"),
            ("[[domain]]", "t.toml:1:3: unknown field `domain`"),
            (
                "[[export]]\npath = \"srv\"\nclients = [{ client = \"*\" }]",
                "t.toml:2:8: path \"srv\" is",
            ),
            ("[[export]]\npath = \"/a\"\nclients = []", "t.toml:2:8: no client"),
            ("[[export]]\npath = \"/a\"\nclients = [{ client = \"a b\" }]", "t.toml:3:23: client"),
            (
                "[[export]]\npath = \"/a\"\nclients = [{ client = \"*\", options = [\"rw\", \
                 \"x\"] }]",
                "t.toml:3:45: unknown option \"x\"",
            ),
            ("a = [", "t.toml:1:"),
            ("port = 70000\n[server]\nport = 70000", "t.toml:"),
        ] {
            let found = read(text).2;
            assert!(found[0].starts_with(expected), "{text}: {found:?}");
        }
        let mut findings = Findings::default();
        parse(&"t".into(), b"a = \"\xff\"", &mut findings);
        assert_eq!(findings.sorted()[0].to_string(), "t:1:6: no UTF-8");
    }
}
