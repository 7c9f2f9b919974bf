//! `[[placement]]` of the configuration: which exports keep their new files on data servers.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use comity_placement::limits::{
    DATA_SERVERS_MAX, MIRRORS_MAX, MIRRORS_USUAL, SERVER_NAME_BYTES_MAX, UNIT_BYTES_MAX,
    UNIT_BYTES_MIN, UNIT_BYTES_USUAL,
};
use comity_vfs::Threshold;
use serde::Deserialize;
use toml::Spanned;

use crate::config_reader::Reader;
use crate::diagnostic::Diagnostics;
use crate::export_spec::ExportSpec;
use crate::path::normal;
use crate::{Location, limits::EXPORTS_MAX};

/// A table `[[placement]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlacementTable {
    export: Spanned<String>,
    key: PathBuf,
    #[serde(default)]
    layout: LayoutTable,
    mirrors: Option<Spanned<usize>>,
    stripe_unit_bytes: Option<Spanned<u32>>,
    #[serde(default, with = "ThresholdTable")]
    threshold: Threshold,
    data_servers: Spanned<Vec<DataServerTable>>,
}

/// The kind of layouts that clients get.
#[derive(Deserialize, Default, PartialEq, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum LayoutTable {
    #[default]
    Files,
    FlexibleFiles,
}

#[derive(Deserialize)]
#[serde(remote = "Threshold", deny_unknown_fields)]
struct ThresholdTable {
    read_file_bytes: Option<u64>,
    write_file_bytes: Option<u64>,
    read_io_bytes: Option<u64>,
    write_io_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DataServerTable {
    name: Spanned<String>,
    address: Spanned<String>,
    path: Option<String>,
    #[serde(default)]
    draining: bool,
}

/// The placement of the new files of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementSpec {
    /// Its location in the configuration.
    pub(crate) place: Location,
    /// The path of the export.
    pub export: PathBuf,
    /// The file with the placement key; each data server has a copy of it.
    pub key: PathBuf,
    /// The number of mirrors of each file, on stock servers of NFSv3; `None` if files are in
    /// stripes on data servers of this program.
    pub mirrors: Option<usize>,
    /// The stripe unit in bytes.
    pub unit_bytes: u32,
    /// The sizes below which clients should use the metadata server.
    pub threshold: Threshold,
    /// The data servers, in the order of the stripe units.
    pub servers: Vec<DataServerSpec>,
}

/// A data server of a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataServerSpec {
    /// The name that files refer to.
    pub name: String,
    /// Its host and port, as in `192.0.2.7:2049`; clients get the address.
    pub address: String,
    /// The path that a stock server of NFSv3 exports; `None` if it is a data server of this
    /// program.
    pub path: Option<String>,
    /// True if it takes no new files, and its files are to be moved to the others.
    pub is_draining: bool,
}

/// The port of NFS (RFC 1813, 1.1).
const PORT: u16 = 2049;

impl Reader<'_> {
    /// Reads all tables. Mistakes are diagnostics.
    pub(crate) fn placements(&mut self, tables: Vec<PlacementTable>) -> Vec<PlacementSpec> {
        let tables = tables.into_iter().take(EXPORTS_MAX);
        tables.filter_map(|table| self.placement(table)).collect()
    }

    fn placement(&mut self, table: PlacementTable) -> Option<PlacementSpec> {
        let span = table.export.span();
        let export = normal(OsStr::new(table.export.get_ref()));
        let export = export.map_err(|what| self.error(&span, what)).ok();
        let unit_bytes = match &table.stripe_unit_bytes {
            None => Some(UNIT_BYTES_USUAL),
            Some(unit) => self.unit_bytes(unit),
        };
        let mirrors = self.mirrors(&table);
        let servers = self.servers(table.data_servers, mirrors?);
        Some(PlacementSpec {
            place: self.place(&span),
            export: export?,
            key: table.key,
            mirrors: mirrors?,
            unit_bytes: unit_bytes?,
            threshold: table.threshold,
            servers: servers?,
        })
    }

    fn unit_bytes(&mut self, unit: &Spanned<u32>) -> Option<u32> {
        let bytes = *unit.get_ref();
        let in_bounds = (UNIT_BYTES_MIN..=UNIT_BYTES_MAX).contains(&bytes);
        if in_bounds && bytes.is_multiple_of(UNIT_BYTES_MIN) {
            return Some(bytes);
        }
        let what = format!(
            "stripe_unit_bytes = {bytes}: expected a multiple of {UNIT_BYTES_MIN}, at most \
             {UNIT_BYTES_MAX}, as clients need whole pages of memory"
        );
        self.error(&unit.span(), what);
        None
    }

    /// Returns the number of mirrors of the files of a placement, if they are mirrored.
    fn mirrors(&mut self, table: &PlacementTable) -> Option<Option<usize>> {
        let count = table.mirrors.as_ref();
        if table.layout == LayoutTable::Files {
            let Some(count) = count else { return Some(None) };
            let what = "mirrors needs layout = \"flexible-files\"";
            self.error(&count.span(), what);
            return None;
        }
        if let Some(unit) = &table.stripe_unit_bytes {
            let what = "mirrors are not striped: leave stripe_unit_bytes out";
            self.error(&unit.span(), what);
            return None;
        }
        let mirrors = count.map_or(MIRRORS_USUAL, |count| *count.get_ref());
        let servers = table.data_servers.get_ref();
        let taking = servers.iter().filter(|server| !server.draining).count();
        if (1..=MIRRORS_MAX.min(taking)).contains(&mirrors) {
            return Some(Some(mirrors));
        }
        let what = format!(
            "{mirrors} mirrors: expected 1 to {MIRRORS_MAX}, and as many data servers that are not \
             draining"
        );
        let span = count.map_or_else(|| table.data_servers.span(), Spanned::span);
        self.error(&span, what);
        None
    }

    fn servers(
        &mut self,
        tables: Spanned<Vec<DataServerTable>>,
        mirrors: Option<usize>,
    ) -> Option<Vec<DataServerSpec>> {
        let span = tables.span();
        let tables = tables.into_inner();
        if !(1..=DATA_SERVERS_MAX).contains(&tables.len()) {
            self.error(&span, format!("expected 1 to {DATA_SERVERS_MAX} data servers"));
            return None;
        }
        let mut servers: Vec<DataServerSpec> = Vec::new();
        for DataServerTable { name, address, path, draining } in tables {
            let (text, length) = (name.get_ref(), name.get_ref().len());
            if !(1..=SERVER_NAME_BYTES_MAX).contains(&length) {
                let what = format!("name {text:?}: expected 1 to {SERVER_NAME_BYTES_MAX} bytes");
                self.error(&name.span(), what);
                return None;
            }
            if servers.iter().any(|known| known.name == *text) {
                self.error(&name.span(), format!("there are two data servers {text:?}"));
                return None;
            }
            if let Some(what) = wrong_path(path.as_deref(), mirrors) {
                self.error(&address.span(), what);
                return None;
            }
            let (name, address) = (name.into_inner(), address.into_inner());
            servers.push(DataServerSpec { name, address, path, is_draining: draining });
        }
        if servers.iter().all(|server| server.is_draining) {
            let what = "all data servers are draining; leave one that takes new files";
            self.error(&span, what);
            return None;
        }
        Some(servers)
    }
}

/// Returns what is wrong with the path of a data server, if something is.
fn wrong_path(path: Option<&str>, mirrors: Option<usize>) -> Option<&'static str> {
    match (path, mirrors) {
        (None, Some(_)) => Some("a data server of flexible files needs the path that it exports"),
        (Some(_), None) => Some("path needs layout = \"flexible-files\""),
        (Some(path), Some(_)) if !path.starts_with('/') => Some("path: expected an absolute path"),
        _ => None,
    }
}

impl DataServerSpec {
    /// Its host, and its port: 2049 if none is named.
    ///
    /// # Errors
    /// The fault of the address, and the expected form.
    pub fn host_and_port(&self) -> Result<(&str, u16), String> {
        let wrong = || format!("address {:?}: expected HOST or HOST:PORT", self.address);
        let (host, port) = match self.address.strip_prefix('[') {
            Some(rest) => {
                let (host, behind) = rest.split_once(']').ok_or_else(wrong)?;
                (host, if behind.is_empty() { None } else { behind.strip_prefix(':') })
            }
            None => match self.address.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (self.address.as_str(), None),
            },
        };
        let port = port.map_or(Ok(PORT), str::parse).map_err(|_| wrong())?;
        if host.is_empty() || (host.contains(':') && !self.address.starts_with('[')) {
            Err(wrong())
        } else {
            Ok((host, port))
        }
    }
}

/// Reports placements of exports that are not declared, and second ones.
pub(crate) fn check_placements(
    placements: &[PlacementSpec],
    exports: &[ExportSpec],
    diagnostics: &mut Diagnostics,
) {
    for (at, placement) in placements.iter().enumerate() {
        let shown = placement.export.display();
        if !exports.iter().any(|export| export.path == placement.export) {
            diagnostics.error(&placement.place, format!("there is no export {shown}"));
        }
        let before = placements.iter().take(at);
        if before.clone().any(|other| other.export == placement.export) {
            diagnostics.error(&placement.place, format!("{shown} has a placement already"));
        }
    }
}

/// Finds the placement of an export.
pub(crate) fn placement_of<'p>(
    placements: &'p [PlacementSpec],
    export: &Path,
) -> Option<&'p PlacementSpec> {
    placements.iter().find(|placement| placement.export == export)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a placement with these lines, and the findings.
    fn read(lines: &str) -> (Vec<PlacementSpec>, Vec<String>) {
        let text = format!(
            "[[export]]\npath = \"/srv\"\nclients = [{{ client = \"*\" }}]\n\
             [[placement]]\nexport = \"/srv\"\nkey = \"/key\"\n{lines}\n"
        );
        let mut diagnostics = Diagnostics::default();
        let read = crate::config::parse(&"t.toml".into(), text.as_bytes(), &mut diagnostics);
        (read.placements, diagnostics.sorted().iter().map(ToString::to_string).collect())
    }

    const STOCK: &str = "data_servers = [{ name = \"a\", address = \"h\", path = \"/m\" }, \
                         { name = \"b\", address = \"h:1\", path = \"/n\" }]";

    #[test]
    fn files_are_striped_unless_the_layout_is_flexible_files() {
        let (specs, found) = read("data_servers = [{ name = \"a\", address = \"h\" }]");
        assert_eq!((specs[0].mirrors, &specs[0].servers[0].path, found), (None, &None, vec![]));
        let (specs, found) = read(&format!("layout = \"flexible-files\"\n{STOCK}"));
        assert_eq!((specs[0].mirrors, found), (Some(2), vec![]));
        assert_eq!(specs[0].servers[1].path.as_deref(), Some("/n"));
        let one = format!("layout = \"flexible-files\"\nmirrors = 1\n{STOCK}");
        assert_eq!(read(&one).0[0].mirrors, Some(1));
    }

    #[test]
    fn settings_that_do_not_fit_the_layout_are_errors() {
        let flexible = |lines: &str| format!("layout = \"flexible-files\"\n{lines}");
        let plain = "data_servers = [{ name = \"a\", address = \"h\" }]";
        for (lines, expected) in [
            (flexible(&format!("mirrors = 3\n{STOCK}")), "t.toml:8:11: 3 mirrors: expected 1 to 4"),
            (flexible(&format!("mirrors = 0\n{STOCK}")), "t.toml:8:11: 0 mirrors"),
            (flexible(plain), "t.toml:8:16: 2 mirrors"),
            (flexible(&format!("mirrors = 1\n{plain}")), "t.toml:9:41: a data server of flexible"),
            (
                flexible(&format!("stripe_unit_bytes = 65536\n{STOCK}")),
                "t.toml:8:21: mirrors are not striped",
            ),
            (STOCK.to_owned(), "t.toml:7:41: path needs layout = \"flexible-files\""),
            (format!("mirrors = 2\n{plain}"), "t.toml:7:11: mirrors needs layout"),
            (flexible(&STOCK.replace("/n", "n")), "t.toml:8:85: path: expected an absolute path"),
            (format!("layout = \"blocks\"\n{plain}"), "t.toml:7:10: unknown variant `blocks`"),
        ] {
            let found = read(&lines).1;
            assert!(found.iter().any(|it| it.starts_with(expected)), "{lines}: {found:?}");
        }
    }
}
