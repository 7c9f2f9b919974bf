//! `[[domain]]`: the clients of a site and their rules, under a name.

use std::collections::HashMap;
use std::sync::Arc;

use comity_idmap::Owners;
use serde::Deserialize;
use toml::Spanned;

use crate::config_reader::Reader;
use crate::exports::options::{Given, Item, given, terms};
use crate::owner_names::{self, OwnersTable};
use crate::{Client, Location};

/// A domain as it is written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DomainTable {
    name: Spanned<String>,
    clients: Vec<Spanned<String>>,
    #[serde(default)]
    options: Vec<Spanned<String>>,
    /// Values of `range_map_uid=`.
    #[serde(default)]
    users: Vec<Spanned<String>>,
    /// Values of `range_map_gid=`.
    #[serde(default)]
    groups: Vec<Spanned<String>>,
    /// The value of `map_default=`.
    map_default: Option<Spanned<String>>,
    /// `root`, `all` or `none`.
    squash: Option<Spanned<String>>,
    anonymous: Option<AnonymousTable>,
    /// Cloaks without the prefix `cloak_`: `uid=A-B:+MASK`.
    #[serde(default)]
    cloaks: Vec<Spanned<String>>,
    owners: Option<OwnersTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnonymousTable {
    user: Spanned<i64>,
    group: Spanned<i64>,
}

/// A valid domain.
pub(crate) struct Domain {
    pub(crate) name: Arc<str>,
    pub(crate) place: Location,
    pub(crate) clients: Vec<(Client, Location)>,
    pub(crate) given: Vec<Given>,
    pub(crate) owners: Owners,
    pub(crate) used: bool,
}

/// The domains by name. Invalid ones are `None`, so that an export that names one is not reported
/// as an error, too.
pub(crate) type Domains = HashMap<String, Option<Domain>>;

/// Reads all domains, and reports mistakes.
pub(crate) fn read(tables: Vec<DomainTable>, reader: &mut Reader<'_>) -> Domains {
    let mut domains = Domains::new();
    let mut places: HashMap<String, Location> = HashMap::new();
    for table in tables {
        let name = table.name.get_ref().clone();
        let place = reader.place(&table.name.span());
        if let Some(first) = places.get(&name) {
            let what = format!("domain {name:?} stands twice, first at {first}");
            reader.error(&table.name.span(), what);
            continue;
        }
        places.insert(name.clone(), place.clone());
        domains.insert(name, domain(&table, place, reader));
    }
    domains
}

/// Reports domains that no export names, and the mistakes in their options, which no export has
/// reported.
pub(crate) fn check_used(domains: &Domains, reader: &mut Reader<'_>) {
    for domain in domains.values().flatten().filter(|domain| !domain.used) {
        let what =
            format!("domain {:?} is named by no export: nothing is offered to it", domain.name);
        reader.diagnostics.warning(&domain.place, what);
        terms(&[&domain.given], &domain.place, reader.diagnostics);
    }
}

fn domain(table: &DomainTable, place: Location, reader: &mut Reader<'_>) -> Option<Domain> {
    if table.clients.is_empty() {
        reader.error(&table.name.span(), "no client: expected clients = [\"...\"]");
        return None;
    }
    let clients = table.clients.iter().map(|client| reader.client(client)).collect::<Vec<_>>();
    let items = items(table, reader)?;
    let given = given(items, reader.diagnostics)?;
    let clients = clients.into_iter().collect::<Option<_>>()?;
    let owners = match &table.owners {
        Some(owners) => owner_names::read(owners, reader)?,
        None => Owners::default(),
    };
    let name = table.name.get_ref().as_str().into();
    Some(Domain { name, place, clients, given, owners, used: false })
}

/// Returns all settings of a domain as options.
fn items(table: &DomainTable, reader: &mut Reader<'_>) -> Option<Vec<Item>> {
    let spelled = |reader: &Reader<'_>, before: &str, text: &Spanned<String>| {
        Item::new(&format!("{before}{}", text.get_ref()), reader.place(&text.span()))
    };
    let mut items = Vec::new();
    for (before, texts) in
        [("", &table.options), ("range_map_uid=", &table.users), ("range_map_gid=", &table.groups)]
    {
        items.extend(texts.iter().map(|text| spelled(reader, before, text)));
    }
    items.extend(table.map_default.iter().map(|text| spelled(reader, "map_default=", text)));
    for cloak in &table.cloaks {
        if !cloak.get_ref().starts_with("uid=") && !cloak.get_ref().starts_with("gid=") {
            let what =
                format!("{:?} is no cloak: expected uid=A[-B]:+MASK or gid=...", cloak.get_ref());
            reader.error(&cloak.span(), what);
            return None;
        }
        items.push(spelled(reader, "cloak_", cloak));
    }
    if let Some(AnonymousTable { user, group }) = &table.anonymous {
        for (name, id) in [("anonuid", user), ("anongid", group)] {
            items.push(Item::new(&format!("{name}={}", id.get_ref()), reader.place(&id.span())));
        }
    }
    items.extend(squash(table, reader)?);
    Some(items)
}

fn squash(table: &DomainTable, reader: &mut Reader<'_>) -> Option<Option<Item>> {
    let Some(squash) = &table.squash else { return Some(None) };
    let option = match squash.get_ref().as_str() {
        "root" => "root_squash",
        "none" => "no_root_squash",
        "all" => "all_squash",
        other => {
            let what = format!("squash: {other:?} is none of root, all and none");
            reader.error(&squash.span(), what);
            return None;
        }
    };
    Some(Some(Item::new(option, reader.place(&squash.span()))))
}
