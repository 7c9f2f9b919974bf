//! Checks licences, bans and sources of the dependencies from the metadata of cargo. It is for
//! machines without cargo-deny, which takes longer to build than the project.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::licence::allows;
use super::verdict::Verdict;
use crate::tools::program;

/// The part of `deny.toml` that is checked.
#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// The output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    source: Option<String>,
}

/// Checks the packages of the checkout against its `deny.toml`.
///
/// # Errors
/// If cargo fails or the file cannot be read.
pub(super) fn check(root: &Path) -> Result<Verdict> {
    let rules = std::fs::read_to_string(root.join("deny.toml")).context("read deny.toml")?;
    let rules: Rules = toml::from_str(&rules).context("deny.toml")?;
    let metadata: Metadata = serde_json::from_slice(&metadata(root)?).context("cargo metadata")?;
    let mut verdict = Verdict::default();
    for package in &metadata.packages {
        let wrong = package.wrongs(&rules);
        if wrong.is_empty() {
            verdict.passed += 1;
        } else {
            verdict.failed.push(package.name.clone());
        }
        verdict.notes.extend(wrong);
    }
    Ok(verdict)
}

fn metadata(root: &Path) -> Result<Vec<u8>> {
    let what = ["metadata", "--format-version", "1", "--locked", "--all-features"];
    let done = Command::new(program()).args(what).current_dir(root).output().context("cargo")?;
    ensure!(done.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&done.stderr));
    Ok(done.stdout)
}

impl Package {
    /// The rules that the package breaks.
    fn wrongs(&self, rules: &Rules) -> Vec<String> {
        let Self { name, version, license, source, dependencies } = self;
        let mut wrongs = Vec::new();
        let mut wrong = |what: String| wrongs.push(format!("{name} {version}: {what}"));
        let licence = license.as_deref().unwrap_or_default();
        if !allows(licence, &rules.licenses.allow) {
            wrong(format!("licence {licence:?}"));
        }
        if rules.bans.deny.iter().any(|banned| banned.name == *name) {
            wrong("is banned".to_owned());
        }
        let is_allowed = |source: &String| {
            let registry = source.strip_prefix("registry+");
            registry.is_some_and(|from| rules.sources.allow_registry.iter().any(|ok| ok == from))
        };
        if let Some(source) = source.as_ref().filter(|source| !is_allowed(source)) {
            wrong(format!("source {source}"));
        }
        // Only packages of this checkout are checked; a path without a version is one of them.
        let any = dependencies.iter().filter(|needed| needed.req == "*" && needed.source.is_some());
        for needed in any.filter(|_| source.is_none()) {
            wrong(format!("asks for any version of {}", needed.name));
        }
        wrongs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        licenses.allow = ["MIT"]
        bans.deny = [{ crate = "openssl-sys" }]
        sources.allow-registry = ["https://here"]
    "#;

    fn wrongs(package: &str) -> usize {
        let package: Package = serde_json::from_str(package).unwrap();
        package.wrongs(&toml::from_str(RULES).unwrap()).len()
    }

    #[test]
    fn each_rule_is_kept() {
        let package = |name: &str, licence: &str, source: &str, needs: &str| {
            format!(
                r#"{{"name":"{name}","version":"1.0.0","license":{licence},"source":{source},
                    "dependencies":[{needs}]}}"#
            )
        };
        let (mit, here) = (r#""MIT""#, r#""registry+https://here""#);
        assert_eq!(wrongs(&package("good", mit, here, "")), 0);
        assert_eq!(wrongs(&package("openssl-sys", mit, here, "")), 1);
        assert_eq!(wrongs(&package("closed", "null", here, "")), 1);
        assert_eq!(wrongs(&package("closed", r#""GPL-3.0""#, here, "")), 1);
        assert_eq!(wrongs(&package("far", mit, r#""registry+https://there""#, "")), 1);
        assert_eq!(wrongs(&package("git", mit, r#""git+https://here""#, "")), 1);
        let any = format!(r#"{{"name":"x","req":"*","source":{here}}}"#);
        assert_eq!(wrongs(&package("ours", mit, "null", &any)), 1);
        let path = r#"{"name":"x","req":"*","source":null}"#;
        assert_eq!(wrongs(&package("ours", mit, "null", path)), 0);
    }
}
