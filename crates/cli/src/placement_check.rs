//! `comity placement check`.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cache_status::{bytes, counted};
use crate::clients::text;
use crate::common_arguments::StateFolderArguments;
use crate::placement_arguments::CheckArguments;
use crate::placement_bytes::{ByteCheck, finding};
use crate::placement_pages::{ShownPlacement, each_file, each_stored, items, placements};
use crate::stdout::say;

/// The names of data files that no placed file is known to refer to, by the data server's address.
type Unclaimed = BTreeMap<String, StoredNames>;

/// The names of data files on one data server.
struct StoredNames {
    /// The export and the name by which the server asks the data server.
    server: (PathBuf, String),
    names: HashSet<String>,
}

/// The findings of a check.
#[derive(Default)]
struct Findings {
    files: u64,
    found: Vec<Value>,
    /// The addresses of data servers that do not answer, each of which is a finding.
    silent: HashSet<String>,
    /// The files and bytes whose mirrors were compared with each other, if that was asked for.
    compared: Option<(u64, u64)>,
}

/// Compares placed files with their data servers.
///
/// # Errors
/// If no server can be asked, or the export has no data servers.
pub(crate) fn perform(
    CheckArguments { bytes, placements: typed }: &CheckArguments,
) -> Result<ExitCode> {
    let all = placements(&typed.state)?;
    let is_meant = |of: &Path| typed.export.as_deref().is_none_or(|export| export == of);
    let meant: Vec<&ShownPlacement> = all.iter().filter(|it| is_meant(&it.export)).collect();
    if let (Some(export), true) = (&typed.export, meant.is_empty()) {
        let export = export.display();
        bail!("no export {export} has data servers; `comity placement status` names all");
    }
    let mut findings = Findings::default();
    let mut unclaimed = list(&typed.state, &meant, &mut findings)?;
    // Files of other exports may be on the same data servers.
    let sharing: Vec<&ShownPlacement> = all.iter().filter(|it| shares(it, &unclaimed)).collect();
    let bar = ProgressBar::new(longest(&unclaimed)).with_style(style());
    let mut byte_check = bytes.then(|| ByteCheck::new(&typed.state, &bar));
    for placement in &sharing {
        walk(&typed.state, placement, &mut unclaimed, |path, file| {
            bar.inc(1);
            if is_meant(&placement.export) {
                findings.add(placement, &path, file);
                findings.compare((placement, &path, file), byte_check.as_mut())?;
            }
            Ok(())
        })?;
    }
    findings.end_comparison(byte_check.as_mut())?;
    confirm(&typed.state, &sharing, &mut unclaimed)?;
    findings.add_orphans(&unclaimed);
    bar.finish_and_clear();
    findings.print(typed.json.json);
    Ok(if findings.found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lists the data files on each data server of placements. A data server that does not answer is a
/// finding.
fn list(
    state: &StateFolderArguments,
    meant: &[&ShownPlacement],
    findings: &mut Findings,
) -> Result<Unclaimed> {
    let mut unclaimed = Unclaimed::new();
    for placement in meant {
        for (server, address) in &placement.servers {
            if unclaimed.contains_key(address) {
                continue;
            }
            let mut names = HashSet::new();
            let keep = |name: &str| {
                names.insert(name.to_owned());
            };
            if let Err(why) = each_stored(state, (&placement.export, server), keep) {
                // The answer to this tells whether the server itself is gone.
                placements(state)?;
                findings.add_server(&placement.export, server, &format!("{why:#}"));
                findings.silent.insert(address.clone());
                names.clear();
            }
            let server = (placement.export.clone(), server.clone());
            unclaimed.insert(address.clone(), StoredNames { server, names });
        }
    }
    Ok(unclaimed)
}

fn shares(placement: &ShownPlacement, unclaimed: &Unclaimed) -> bool {
    placement.servers.iter().any(|(_, address)| unclaimed.contains_key(address))
}

fn longest(unclaimed: &Unclaimed) -> u64 {
    unclaimed.values().map(|stored| stored.names.len() as u64).max().unwrap_or(0)
}

/// Walks the placed files of an export, and removes their data files from the unclaimed ones.
fn walk(
    state: &StateFolderArguments,
    placement: &ShownPlacement,
    unclaimed: &mut Unclaimed,
    mut each: impl FnMut(String, &Value) -> Result<()>,
) -> Result<()> {
    each_file(state, &placement.export, |path, file| {
        claim(placement, unclaimed, file);
        each(path, file)
    })
}

/// Removes the data files of a file from the unclaimed ones. On another data server of its
/// placement, a data file of its name is an old mirror that was made elsewhere since. One at an
/// address that the placement does not have may still be the file's own: data servers may have
/// several addresses, and a file may name one that has another name now.
fn claim(placement: &ShownPlacement, unclaimed: &mut Unclaimed, file: &Value) {
    let Some(name) = file["stored_name"].as_str() else { return };
    let own: Vec<&str> = items(&file["servers"]).filter_map(Value::as_str).collect();
    let named = |it: &str| placement.servers.iter().any(|(known, _)| known == it);
    let are_named = own.iter().all(|it| named(it));
    for (address, stored) in unclaimed.iter_mut() {
        let mut there = placement.servers.iter().filter(|(_, at)| at == address).peekable();
        let is_other = there.peek().is_some() && there.all(|(it, _)| !own.contains(&&**it));
        if !(are_named && is_other) {
            stored.names.remove(name);
        }
    }
}

/// Leaves only those names unclaimed whose data files are still there, and to which no file refers
/// in a second walk either: a file that is renamed during a walk may be missed.
fn confirm(
    state: &StateFolderArguments,
    sharing: &[&ShownPlacement],
    unclaimed: &mut Unclaimed,
) -> Result<()> {
    if longest(unclaimed) == 0 {
        return Ok(());
    }
    for stored in unclaimed.values_mut().filter(|stored| !stored.names.is_empty()) {
        let mut present = HashSet::new();
        let (export, server) = &stored.server;
        each_stored(state, (export, server), |name| {
            if stored.names.contains(name) {
                present.insert(name.to_owned());
            }
        })?;
        stored.names = present;
    }
    sharing.iter().try_for_each(|placement| walk(state, placement, unclaimed, |_, _| Ok(())))
}

impl Findings {
    /// Adds the faults of a file, except those about data servers that do not answer.
    fn add(&mut self, placement: &ShownPlacement, path: &str, file: &Value) {
        self.files += 1;
        let faults: Vec<&Value> = items(&file["faults"]).collect();
        self.add_faults((placement, path, file), faults);
    }

    fn add_faults<'f>(
        &mut self,
        (placement, path, file): (&ShownPlacement, &str, &Value),
        faults: impl IntoIterator<Item = &'f Value>,
    ) {
        let address = |name: &Value| placement.servers.iter().find(|(known, _)| known == name);
        let is_silent = |fault: &Value| {
            let server = address(&fault["server"]);
            fault["kind"] == "unchecked" && server.is_some_and(|it| self.silent.contains(&it.1))
        };
        let faults = faults.into_iter().filter(|fault| !is_silent(fault));
        let found = faults.map(|it| finding((&placement.export, path), &file["fileid"], it));
        let found: Vec<Value> = found.collect();
        self.found.extend(found);
    }

    /// Compares the bytes of a file's mirrors, if that was asked for.
    fn compare(
        &mut self,
        (placement, path, file): (&ShownPlacement, &str, &Value),
        byte_check: Option<&mut ByteCheck<'_>>,
    ) -> Result<()> {
        if let Some(byte_check) = byte_check {
            let faults = byte_check.add(&placement.export, path, file)?;
            self.add_faults((placement, path, file), &faults);
        }
        Ok(())
    }

    fn end_comparison(&mut self, byte_check: Option<&mut ByteCheck<'_>>) -> Result<()> {
        if let Some(byte_check) = byte_check {
            self.found.extend(byte_check.end()?);
            self.compared = Some((byte_check.files, byte_check.bytes));
        }
        Ok(())
    }

    fn add_server(&mut self, export: &Path, server: &str, why: &str) {
        let export = export.display().to_string();
        let finding =
            json!({ "kind": "unchecked", "export": export, "server": server, "text": why });
        self.found.push(finding);
    }

    fn add_orphans(&mut self, unclaimed: &Unclaimed) {
        for StoredNames { server: (export, server), names } in unclaimed.values() {
            let mut names: Vec<&String> = names.iter().collect();
            names.sort();
            let export = export.display().to_string();
            let orphan = |name| {
                json!({
                    "kind": "orphaned", "export": export, "server": server, "stored_name": name,
                    "text": "no file refers to this data file",
                })
            };
            self.found.extend(names.into_iter().map(orphan));
        }
    }

    fn count(&self, kind: &str) -> u64 {
        self.found.iter().filter(|finding| finding["kind"] == kind).count() as u64
    }

    fn print(&self, json: bool) {
        let [lost, orphaned, differing, degraded, unchecked] =
            ["lost", "orphaned", "differing", "degraded", "unchecked"].map(|kind| self.count(kind));
        if json {
            return say(json!({
                "files": self.files, "lost": lost, "orphaned": orphaned, "differing": differing,
                "degraded": degraded, "unchecked": unchecked, "findings": self.found,
                "compared_files": self.compared.map(|(files, _)| files),
                "compared_bytes": self.compared.map(|(_, bytes)| bytes),
            }));
        }
        self.found.iter().map(line).for_each(say);
        let mut files = counted(self.files, "file");
        if let Some((compared, size)) = self.compared {
            files += &format!(", {compared} compared byte by byte ({})", bytes(size));
        }
        match self.found.is_empty() {
            true => say(format_args!("{files}: all right")),
            false => say(format_args!(
                "{files}: {lost} lost, {orphaned} orphaned, {differing} differing, {unchecked} \
                 unchecked{}",
                if degraded > 0 { format!(", {degraded} degraded") } else { String::new() }
            )),
        }
    }
}

fn line(finding: &Value) -> String {
    let object = match (finding["path"].as_str(), finding["stored_name"].as_str()) {
        (Some(path), _) => format!("{}{path}", text(&finding["export"])),
        (None, Some(name)) => name.to_owned(),
        (None, None) => text(&finding["export"]).to_owned(),
    };
    let server = finding["server"].as_str().map_or_else(String::new, |it| format!(" on {it}"));
    format!("{}: {object}{server}: {}", text(&finding["kind"]), text(&finding["text"]))
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template(
        "{bar:30} {pos}/{len} files  {elapsed_precise}, {eta} left  {msg}",
    );
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_claims_the_data_files_on_its_own_data_servers_only() {
        let servers = ["a", "b"].map(|it| (it.to_owned(), format!("{it}:2049"))).to_vec();
        let placement = ShownPlacement { export: "/srv".into(), servers, draining: Vec::new() };
        let stored = |it: &str| {
            let names = HashSet::from(["00ff".to_owned()]);
            (format!("{it}:2049"), StoredNames { server: ("/srv".into(), it.to_owned()), names })
        };
        let mut unclaimed = Unclaimed::from(["a", "b"].map(stored));
        let other = StoredNames { server: ("/srv/other".into(), "x".to_owned()), ..stored("a").1 };
        unclaimed.insert("x:2049".to_owned(), other);
        let of = |servers: &[&str]| json!({ "stored_name": "00ff", "servers": servers });
        claim(&placement, &mut unclaimed, &of(&["a"]));
        assert!(unclaimed["a:2049"].names.is_empty());
        assert_eq!(unclaimed["b:2049"].names.len(), 1, "an old mirror");
        assert!(unclaimed["x:2049"].names.is_empty(), "it may be another address of a data server");
        claim(&placement, &mut unclaimed, &of(&["a", "renamed"]));
        assert!(unclaimed["b:2049"].names.is_empty(), "it may be what has another name now");
    }

    #[test]
    fn a_finding_is_shown_with_its_file_and_its_data_server() {
        let mut findings = Findings::default();
        let faults = json!([{ "server": "a", "kind": "lost", "text": "no data file" }]);
        let servers = ["a", "b"].map(|it| (it.to_owned(), format!("{it}:2049"))).to_vec();
        let placement = ShownPlacement { export: "/srv".into(), servers, draining: Vec::new() };
        findings.add(&placement, "/d/f", &json!({ "fileid": 7, "faults": faults }));
        findings.silent.insert("b:2049".to_owned());
        let faults = json!([{ "server": "b", "kind": "unchecked", "text": "try again" }]);
        findings.add(&placement, "/d/g", &json!({ "fileid": 8, "faults": faults }));
        findings.add_server(Path::new("/srv"), "b", "it is down");
        let names = HashSet::from(["00ff".to_owned()]);
        let server = ("/srv".into(), "c".to_owned());
        let stored = StoredNames { server, names };
        findings.add_orphans(&BTreeMap::from([("192.0.2.1:2049".to_owned(), stored)]));
        let lines: Vec<String> = findings.found.iter().map(line).collect();
        let expected = [
            "lost: /srv/d/f on a: no data file",
            "unchecked: /srv on b: it is down",
            "orphaned: 00ff on c: no file refers to this data file",
        ];
        assert_eq!(lines, expected);
        assert_eq!((findings.files, findings.count("lost"), findings.count("orphaned")), (2, 1, 1));
    }
}
