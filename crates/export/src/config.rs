use std::ffi::OsStr;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use crate::config_reader::Reader;
use crate::diagnostic::Diagnostics;
use crate::domain::{self, Domain, DomainTable, Domains};
use crate::export_spec::{ClientSpec, ExportSpec};
use crate::exports::options::{Given, Item, given, terms};
use crate::limits::CLIENTS_MAX;
use crate::path::normal;
use crate::peer_server::PeerTable;
use crate::placement::PlacementTable;
use crate::{Client, Configuration, Location, RuleSource, ServerSettings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    server: ServerSettings,
    #[serde(default)]
    domain: Vec<DomainTable>,
    #[serde(default)]
    export: Vec<ExportTable>,
    #[serde(default)]
    placement: Vec<PlacementTable>,
    #[serde(default)]
    peer: Vec<PeerTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportTable {
    path: Spanned<String>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
    #[serde(default)]
    clients: Vec<ClientTable>,
    #[serde(default)]
    domains: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientTable {
    client: Option<Spanned<String>>,
    domain: Option<Spanned<String>>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
}

/// Parses the text of a TOML file called `file`. It never fails: mistakes become diagnostics.
pub(crate) fn parse(file: &Arc<str>, text: &[u8], diagnostics: &mut Diagnostics) -> Configuration {
    let mut reader = Reader::new(file, text, diagnostics);
    let document = std::str::from_utf8(text)
        .map_err(|error| (error.valid_up_to()..text.len(), "no UTF-8".to_owned()))
        .and_then(|text| {
            toml::from_str::<Document>(text)
                .map_err(|error| (error.span().unwrap_or_default(), error.message().to_owned()))
        });
    match document {
        Ok(Document { server, domain: domains, export, placement, peer }) => {
            let mut domains = domain::read(domains, &mut reader);
            let exports = reader.exports(export, &mut domains);
            domain::check_used(&domains, &mut reader);
            let placements = reader.placements(placement);
            let peers = reader.peers(peer);
            Configuration { server, exports, placements, peers }
        }
        Err((span, what)) => {
            reader.error(&span, what);
            Configuration::default()
        }
    }
}

impl Reader<'_> {
    fn exports(&mut self, tables: Vec<ExportTable>, domains: &mut Domains) -> Vec<ExportSpec> {
        let of = |name: &Spanned<String>| match domains.get(name.get_ref()) {
            Some(Some(domain)) => domain.clients.len(),
            _ => 1,
        };
        let count = |table: &ExportTable| {
            let clients = table.clients.iter().map(|client| client.domain.as_ref().map_or(1, of));
            clients.chain(table.domains.iter().map(of)).sum::<usize>()
        };
        if tables.iter().map(count).sum::<usize>() > CLIENTS_MAX {
            let place = Location::file(self.file);
            self.diagnostics.error(&place, format!("more than {CLIENTS_MAX} clients"));
            return Vec::new();
        }
        tables.into_iter().filter_map(|table| self.export(&table, domains)).collect()
    }

    fn export(&mut self, table: &ExportTable, domains: &mut Domains) -> Option<ExportSpec> {
        let span = table.path.span();
        if table.clients.is_empty() && table.domains.is_empty() {
            let what =
                "no client: expected clients = [{ client = \"...\" }] or domains = [\"...\"]";
            self.error(&span, what);
        }
        let path = normal(OsStr::new(table.path.get_ref()));
        let path = path.map_err(|what| self.error(&span, what)).ok();
        let defaults = self.options(&table.options)?;
        let mut specs = Vec::new();
        for name in &table.domains {
            specs.extend(self.of_domain(name, domains, &defaults, &[]));
        }
        for client in &table.clients {
            specs.extend(self.specs(client, &span, domains, &defaults));
        }
        Some(ExportSpec { place: self.place(&span), path: path?, specs })
    }

    fn specs(
        &mut self,
        table: &ClientTable,
        export: &Range<usize>,
        domains: &mut Domains,
        defaults: &[Given],
    ) -> Vec<ClientSpec> {
        match (&table.client, &table.domain) {
            (Some(client), None) => {
                let client = self.client(client);
                let own = self.options(&table.options);
                client
                    .zip(own)
                    .and_then(|(c, own)| self.spec(c, defaults, &own))
                    .into_iter()
                    .collect()
            }
            (None, Some(name)) => match self.options(&table.options) {
                Some(own) => self.of_domain(name, domains, defaults, &own),
                None => Vec::new(),
            },
            (one, _) => {
                let span = one.as_ref().map_or(export.clone(), Spanned::span);
                self.error(&span, "expected either client = \"...\" or domain = \"...\"");
                Vec::new()
            }
        }
    }

    fn spec(
        &mut self,
        (client, place): (Client, Location),
        defaults: &[Given],
        own: &[Given],
    ) -> Option<ClientSpec> {
        let (terms, origin) = terms(&[defaults, own], &place, self.diagnostics)?;
        Some(ClientSpec { place, client, terms, origin })
    }

    /// Returns one entry for each client of a domain.
    fn of_domain(
        &mut self,
        name: &Spanned<String>,
        domains: &mut Domains,
        defaults: &[Given],
        own: &[Given],
    ) -> Vec<ClientSpec> {
        let Some(found) = domains.get_mut(name.get_ref()) else {
            self.error(&name.span(), format!("there is no domain {:?}", name.get_ref()));
            return Vec::new();
        };
        let Some(Domain { name: called, clients, given, owners, used, .. }) = found else {
            return Vec::new();
        };
        *used = true;
        let place = self.place(&name.span());
        let terms = terms(&[defaults, given, own], &place, self.diagnostics);
        let Some((mut terms, origin)) = terms else { return Vec::new() };
        terms.rules.ids.owners = owners.clone();
        let spec = |(client, place): &(Client, Location)| ClientSpec {
            place: place.clone(),
            client: client.clone(),
            terms: terms.clone(),
            origin: RuleSource {
                place: place.clone(),
                domain: Some(Arc::clone(called)),
                ..origin.clone()
            },
        };
        clients.iter().map(spec).collect()
    }

    fn options(&mut self, options: &[Spanned<String>]) -> Option<Vec<Given>> {
        let item =
            |option: &Spanned<String>| Item::new(option.get_ref(), self.place(&option.span()));
        let items = options.iter().map(item).collect();
        given(items, self.diagnostics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "(\\[\\[?(export|server|domain)\\]\\]?|path|name|users|cloaks|domains|clients|\
                    client|options|=|\\[|\\]|\\{|\\}|,|\"|/a|rw|1|\n| |.)*",
        ) {
            read(&text);
        }
    }

    /// Makes a file with a domain, whose other settings begin on the fourth line, and an export
    /// that names the domain.
    fn domain(rest: &str) -> String {
        format!("[[domain]]\nname = \"b\"\nclients = [\n \"*\"]\n{rest}\n{EXPORT}")
    }

    const EXPORT: &str = "[[export]]\npath = \"/a\"\ndomains = [\"b\"]";

    #[test]
    fn a_domain_has_the_effect_of_its_options() {
        let (_, exports, found) = read(
            "[[domain]]\nname = \"b\"\nclients = [\"10.0.0.0/8\", \"*\"]\n\
             options = [\"rw\", \"no_client_cache\"]\nusers = [\"1-2:3-4\", \"5:6\"]\n\
             groups = [\"7:8\"]\nmap_default = \"deny\"\nsquash = \"none\"\n\
             anonymous = { user = 9, group = 10 }\ncloaks = [\"gid=1:+070\", \"uid=2:-004\"]\n\
             [[export]]\npath = \"/a\"\noptions = [\"ro\", \"fsid=3\"]\ndomains = [\"b\"]\n\
             [[export]]\npath = \"/c\"\nclients = [{ domain = \"b\", options = [\"ro\"] }]",
        );
        assert_eq!(found, [""; 0]);
        let options = "no_client_cache,range_map_uid=1-2:3-4,range_map_uid=5:6,range_map_gid=7:8,\
                       map_default=deny,no_root_squash,anonuid=9,anongid=10,cloak_gid=1:+070,\
                       cloak_uid=2:-004";
        let line = format!("/a -fsid=3,rw,{options} 10.0.0.0/8 *\n/c -ro,{options} 10.0.0.0/8 *");
        let expected =
            crate::exports::parse(&"e".into(), line.as_bytes(), &mut Diagnostics::default());
        for (read, expected) in exports.iter().zip(&expected) {
            let shown =
                |d: &ExportSpec| d.specs.iter().map(ClientSpec::to_string).collect::<Vec<_>>();
            assert_eq!((&read.path, shown(read)), (&expected.path, shown(expected)));
        }
        assert_eq!((exports.len(), expected.len()), (2, 2));
        let spec = &exports[1].specs[1];
        assert_eq!(spec.place.to_string(), "t.toml:3:26");
        assert_eq!(spec.origin.domain.as_deref(), Some("b"));
        assert_eq!(spec.origin.users[1].to_string(), "t.toml:5:21");
        assert_eq!(spec.origin.cloaks[0].to_string(), "t.toml:10:11");
    }

    #[test]
    fn a_domain_without_an_export_is_reported() {
        let found = read("[[domain]]\nname = \"b\"\nclients = [\"*\"]").2;
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("t.toml:2:8: warning: domain \"b\" is named by no export"));
    }

    fn read(text: &str) -> (ServerSettings, Vec<ExportSpec>, Vec<String>) {
        let mut diagnostics = Diagnostics::default();
        let read = parse(&"t.toml".into(), text.as_bytes(), &mut diagnostics);
        (read.server, read.exports, diagnostics.sorted().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn both_forms_declare_the_same_exports() {
        let toml = "[server]\nport = 2050\nlisten = [\"::1\"]\n\n[[export]]\npath = \"/srv/a b\"\n\
                    options = [\"rw\", \"sec=sys:none\"]\nclients = [\n { client = \"10.0.0.0/8\" \
                    },\n\
                    { client = \"*\", options = [\"ro\", \"anonuid=7\"] },\n]\n";
        let (server, exports, found) = read(toml);
        assert_eq!((server.port, found), (Some(2050), vec![]));
        let line = b"/srv/a\\040b -rw,sec=sys:none 10.0.0.0/8 *(ro,anonuid=7)";
        let mut diagnostics = Diagnostics::default();
        let expected = crate::exports::parse(&"exports".into(), line, &mut diagnostics);
        let plain = |declarations: &[ExportSpec]| -> Vec<_> {
            let spec = |spec: &ClientSpec| (spec.client.clone(), spec.terms.clone());
            declarations
                .iter()
                .map(|d| (d.path.clone(), d.specs.iter().map(spec).collect::<Vec<_>>()))
                .collect()
        };
        assert_eq!(plain(&exports), plain(&expected));
        assert_eq!(exports[0].specs.len(), 2);
    }

    #[test]
    fn errors_have_line_and_column() {
        for (text, expected) in [
            ("[server]\nprot = 1", "t.toml:2:1: unknown field `prot`"),
            ("[[realm]]", "t.toml:1:3: unknown field `realm`"),
            ("[[domain]]\nname = \"a\"\nclients = []", "t.toml:2:8: no client"),
            ("[[domain]]\nname = \"a\"\nclients = [\"a b\"]", "t.toml:3:12: client \"a b\""),
            (
                "[[domain]]\nname = \"a\"\nclients = [\"*\"]\ncolour = 1",
                "t.toml:4:1: unknown field `colour`",
            ),
            (
                &domain("users = [\"1-2:3-4\",\n \"5-6:4-5\"]"),
                "t.toml:6:2: option range_map_uid: server",
            ),
            (&domain("groups = [\"1\"]"), "t.toml:5:11: option range_map_gid: \"1\" is no map"),
            (&domain("cloaks = [\"1:+000\"]"), "t.toml:5:11: \"1:+000\" is no cloak"),
            (&domain("cloaks = [\"uid=1:+9\"]"), "t.toml:5:11: option cloak_uid: \"+9\""),
            (&domain("squash = \"some\""), "t.toml:5:10: squash: \"some\" is none of root"),
            (&domain("map_default = \"x\""), "t.toml:5:15: option map_default: \"x\""),
            (&domain("anonymous = { user = -1, group = 0 }"), "t.toml:5:22: option anonuid: -1 is"),
            (&domain("options = [\"rw\", \"ro\"]"), "t.toml:5:18: option ro contradicts rw"),
            (
                &domain("[[domain]]\nname = \"b\"\nclients = [\"*\"]"),
                "t.toml:6:8: domain \"b\" stands",
            ),
            (
                "[[export]]\npath = \"/a\"\ndomains = [\"b\"]",
                "t.toml:3:12: there is no domain \"b\"",
            ),
            (
                "[[export]]\npath = \"/a\"\nclients = [{ options = [] }]",
                "t.toml:2:8: expected either client",
            ),
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
        let mut diagnostics = Diagnostics::default();
        parse(&"t".into(), b"a = \"\xff\"", &mut diagnostics);
        assert_eq!(diagnostics.sorted()[0].to_string(), "t:1:6: no UTF-8");
    }
}
