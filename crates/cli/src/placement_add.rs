//! `comity placement add`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use comity_server::control::Request;
use serde_json::{Value, json};

use crate::clients::text;
use crate::control_client;
use crate::placement_arguments::AddArguments;
use crate::placement_pages::{items, meant_placements};
use crate::placement_toml::{NamedServer, with_server};
use crate::stdout::say;

/// A configuration that is changed.
struct ChangedFile {
    path: PathBuf,
    before: String,
}

/// Adds a data server to a placement of a running server.
///
/// # Errors
/// The data server cannot be added, and what to do. The configuration is as before then.
pub(crate) fn perform(typed: &AddArguments) -> Result<ExitCode> {
    let export = meant_export(typed)?;
    let request = Request::PlacementTry {
        export: export.clone(),
        name: typed.name.clone(),
        address: typed.address.clone(),
        path: typed.path.clone(),
    };
    let tried = control_client::ask(typed.placements.state.clone(), &request)?;
    let file = ChangedFile::read(typed, &tried)?;
    let (name, address, path) = (&*typed.name, &*typed.address, typed.path.as_deref());
    let server = NamedServer { name, address, path };
    let shown = file.path.display();
    let after = with_server(&file.before, &export, server).with_context(|| shown.to_string())?;
    let reloaded = if typed.dry_run { Value::Null } else { file.put_in_force(typed, &after)? };
    let answer = json!({
        "export": export.display().to_string(),
        "name": typed.name,
        "address": tried["address"],
        "data_files": tried["files"],
        "config": shown.to_string(),
        "entry": server.element().to_string(),
        "is_added": !typed.dry_run,
        "findings": reloaded["findings"],
    });
    match typed.placements.json.json {
        true => say(answer),
        false => lines(&answer).iter().for_each(say),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the export whose placement gets the data server.
fn meant_export(typed: &AddArguments) -> Result<PathBuf> {
    let mut meant = meant_placements(&typed.placements)?;
    match (meant.pop(), meant.len()) {
        (Some(only), 0) => Ok(only.export),
        (None, _) => bail!("no export has data servers: write a [[placement]], and restart"),
        _ => bail!("several exports have data servers: name one of them as EXPORT"),
    }
}

impl ChangedFile {
    /// Reads the configuration that is named, or that the server runs with.
    fn read(typed: &AddArguments, tried: &Value) -> Result<Self> {
        let of_server = tried["config"].as_str().map(PathBuf::from);
        let path = typed.config.clone().or(of_server);
        let path = path.context("the server runs without a TOML file: name it with --config")?;
        // A link stays one.
        let path = fs::canonicalize(&path).with_context(|| path.display().to_string())?;
        let before = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(Self { path, before })
    }

    /// Writes another text and has the server reload it. If the server refuses it, the text from
    /// before is written again.
    fn put_in_force(&self, typed: &AddArguments, after: &str) -> Result<Value> {
        self.write(after)?;
        let reloaded = control_client::ask(typed.placements.state.clone(), &Request::Reload);
        let refused = match reloaded {
            Ok(answer) if answer["ok"] == true => return Ok(answer),
            Ok(answer) => {
                let findings = items(&answer["findings"]).map(|it| text(&it["shown"]));
                anyhow!("{}", findings.collect::<Vec<_>>().join("\n"))
            }
            Err(why) => why,
        };
        self.write(&self.before)?;
        let shown = self.path.display();
        Err(refused
            .context(format!("the server did not take the data server; {shown} is as before")))
    }

    /// Replaces the file at once, and keeps its owner and its mode.
    fn write(&self, text: &str) -> Result<()> {
        let shown = || format!("{} cannot be written", self.path.display());
        let new = beside(&self.path);
        let of = fs::metadata(&self.path).with_context(shown)?;
        let mut open = OpenOptions::new();
        let opened = open.write(true).create(true).truncate(true).mode(0o600).open(&new);
        let written = opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::set_permissions(&new, of.permissions()))
            .and_then(|()| chown(&new, Some(of.uid()), Some(of.gid())))
            .and_then(|()| fs::File::open(&new)?.sync_all())
            .and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            // It may not be there.
            let _ = fs::remove_file(&new);
        }
        written.with_context(shown)
    }
}

/// The name under which a file is written before it replaces another one.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

fn lines(answer: &Value) -> Vec<String> {
    let [export, name, address, config, entry] =
        ["export", "name", "address", "config", "entry"].map(|it| text(&answer[it]));
    let folder = match answer["data_files"].as_u64() {
        None | Some(0) => "its folder is empty".to_owned(),
        Some(count) => format!("its folder has data files of {export} ({count} looked at)"),
    };
    let mut lines: Vec<String> =
        items(&answer["findings"]).map(|it| text(&it["shown"]).to_owned()).collect();
    lines.push(format!("{name} ({address}) can be used: {folder}"));
    if answer["is_added"] == true {
        lines.push(format!("added to {config}, and reloaded: {entry}"));
        lines.push(format!(
            "new files of {export} use {name} from now on; old ones stay where they are until they \
             are drained"
        ));
    } else {
        lines.push(format!("would be added to {config}: {entry}"));
    }
    lines
}
