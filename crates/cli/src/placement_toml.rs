//! The change of a `[[placement]]` in a configuration, in which everything else stays as it is.

use std::path::Path;

use anyhow::{Context, Result, bail};
use toml_edit::{Array, DocumentMut, InlineTable, Item, RawString, Table, Value};

/// A data server as the configuration names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedServer<'s> {
    pub(crate) name: &'s str,
    pub(crate) address: &'s str,
    pub(crate) path: Option<&'s str>,
}

/// The indentation of a data server on a line of its own.
const INDENT: &str = "  ";

impl NamedServer<'_> {
    fn fields(self) -> impl Iterator<Item = (&'static str, String)> {
        let named = [("name", Some(self.name)), ("address", Some(self.address))];
        let fields = named.into_iter().chain([("path", self.path)]);
        fields.filter_map(|(field, value)| Some((field, value?.to_owned())))
    }

    /// The data server as an element of `data_servers`.
    pub(crate) fn element(self) -> InlineTable {
        let mut element: InlineTable =
            self.fields().map(|(field, value)| (field, Value::from(value))).collect();
        element.fmt();
        element
    }
}

/// Adds a data server to the placement of an export in the text of a configuration.
///
/// # Errors
/// The text is no TOML, or has no such placement.
pub(crate) fn with_server(text: &str, export: &Path, server: NamedServer<'_>) -> Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let tables = document.get_mut("placement").and_then(Item::as_array_of_tables_mut);
    let is_of = |table: &&mut Table| {
        let of = table.get("export").and_then(Item::as_str);
        of.is_some_and(|of| Path::new(of) == export)
    };
    let table = tables.and_then(|tables| tables.iter_mut().find(|table| is_of(table)));
    let table = table.with_context(|| {
        format!(
            "it has no [[placement]] for {}: name the right one with --config",
            export.display()
        )
    })?;
    match table.get_mut("data_servers") {
        Some(Item::Value(Value::Array(list))) => append(list, server.element()),
        Some(Item::ArrayOfTables(list)) => {
            list.push(server.fields().map(|(field, value)| (field, Value::from(value))).collect());
        }
        _ => bail!("its [[placement]] for {} has no data_servers", export.display()),
    }
    Ok(document.to_string())
}

/// Appends an element in the way in which the list is written: on a line of its own if the last one
/// is, whose comment stays with it.
fn append(list: &mut Array, element: InlineTable) {
    let (mut behind, mut indent) = (String::new(), INDENT.to_owned());
    let has_comma = list.trailing_comma();
    if let Some(last) = list.iter_mut().last() {
        let decor = last.decor_mut();
        let before = decor.prefix().and_then(RawString::as_str).unwrap_or_default();
        if let Some((_, of_last)) = before.rsplit_once('\n') {
            indent = of_last.to_owned();
        }
        if !has_comma {
            behind = decor.suffix().and_then(RawString::as_str).unwrap_or_default().to_owned();
            decor.set_suffix("");
        }
    }
    behind.push_str(list.trailing().as_str().unwrap_or_default());
    let mut element = Value::InlineTable(element);
    if let Some((comment, end)) = behind.rsplit_once('\n') {
        element.decor_mut().set_prefix(format!("{comment}\n{indent}"));
        list.set_trailing(format!("\n{end}"));
        list.set_trailing_comma(true);
    } else {
        element.decor_mut().set_prefix(if list.is_empty() { "" } else { " " });
        list.set_trailing(behind);
    }
    list.push_formatted(element);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# Exports\n[[export]]\npath = \"/srv\" # ours\n\n\
                        [[placement]]\nexport = \"/other\"\ndata_servers = []\n\n\
                        [[placement]]\nexport = \"/srv\"\n";

    fn added(list: &str) -> String {
        let server = NamedServer { name: "e", address: "192.0.2.25", path: None };
        let text = with_server(&format!("{HEAD}{list}"), Path::new("/srv"), server).unwrap();
        text.strip_prefix(HEAD).unwrap().to_owned()
    }

    #[test]
    fn a_data_server_is_added_in_the_way_of_the_others_and_comments_stay() {
        let e = "{ name = \"e\", address = \"192.0.2.25\" }";
        for (before, after) in [
            (
                "data_servers = [{ name = \"a\" }] # all\n",
                format!("[{{ name = \"a\" }}, {e}] # all\n"),
            ),
            (
                "data_servers = [\n    { name = \"a\" }, # one\n] # all\nmirrors = 2\n",
                format!("[\n    {{ name = \"a\" }}, # one\n    {e},\n] # all\nmirrors = 2\n"),
            ),
            (
                "data_servers = [\n  { name = \"a\" } # one\n]\n",
                format!("[\n  {{ name = \"a\" }}, # one\n  {e},\n]\n"),
            ),
        ] {
            assert_eq!(added(before), format!("data_servers = {after}"));
        }
        let tables = "[[placement.data_servers]]\nname = \"a\"\n";
        let table = "name = \"e\"\naddress = \"192.0.2.25\"\n";
        assert_eq!(added(tables), format!("{tables}\n[[placement.data_servers]]\n{table}"));
    }

    #[test]
    fn the_path_of_a_stock_server_is_added() {
        let server = NamedServer { name: "h", address: "h:2049", path: Some("/mirror") };
        let text = "{ name = \"h\", address = \"h:2049\", path = \"/mirror\" }";
        assert_eq!(server.element().to_string(), text);
    }

    #[test]
    fn a_configuration_without_the_placement_is_refused() {
        let server = NamedServer { name: "e", address: "h", path: None };
        let refused =
            |text: &str| with_server(text, Path::new("/srv"), server).unwrap_err().to_string();
        assert!(
            refused("[[placement]]\nexport = \"/other\"\n").contains("no [[placement]] for /srv")
        );
        assert!(refused("[[placement]]\nexport = \"/srv\"\n").contains("has no data_servers"));
    }
}
