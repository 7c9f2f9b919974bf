//! Manual pages and completions, from the definition of the arguments. The pages about files and
//! concepts are written by hand and are part of the binary.

mod options;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::stdout::show;

/// Hand-written pages.
const WRITTEN: &[(&str, &str)] = &[
    ("comity-exports.5", include_str!("comity-exports.5")),
    ("comity.toml.5", include_str!("comity.toml.5")),
    ("comity.7", include_str!("comity.7")),
];

/// The place of the options in a written page.
const OPTIONS: &str = "@OPTIONS@\n";

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "comity", &mut script);
    show(&script);
}

/// Prints one page.
///
/// # Errors
/// If there is no such page; the message names those that exist.
pub(crate) fn print(name: &str) -> Result<()> {
    let pages = pages()?;
    let Some((_, page)) = pages.iter().find(|(known, _)| known == name) else {
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        bail!("there is no page {name}; there are {}", names.join(", "));
    };
    show(page);
    Ok(())
}

/// Writes all pages into a folder.
///
/// # Errors
/// If it cannot be made or written to.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let failed = || format!("cannot write to {}: choose another folder", folder.display());
    fs::create_dir_all(folder).with_context(failed)?;
    for (name, page) in pages()? {
        fs::write(folder.join(name), page).with_context(failed)?;
    }
    Ok(())
}

fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let written = |page: &str| page.replace(OPTIONS, &options::roff()).into_bytes();
    let mut pages: Vec<_> =
        WRITTEN.iter().map(|(name, page)| ((*name).to_owned(), written(page))).collect();
    let mut top = Arguments::command().disable_help_subcommand(true);
    top.build();
    pages.push(("comity.1".into(), render(top.clone())?));
    add_subcommands(&top, "comity", &mut pages)?;
    pages.sort();
    Ok(pages)
}

/// Adds a page for each subcommand, recursively.
fn add_subcommands(
    command: &Command,
    path: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let name = format!("{path}-{}", below.get_name());
        pages.push((format!("{name}.1"), render(below.clone().display_name(name.clone()))?));
        add_subcommands(below, &name, pages)?;
    }
    Ok(())
}

fn render(command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .date("November 2026")
        .source("comity")
        .manual("Comity manual")
        .render(&mut page)?;
    Ok(page)
}
