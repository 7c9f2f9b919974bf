//! One binary: arguments, plan, run.
//!
//! **Answers:** what a user typed ([`arguments`]), what it means here and now ([`settings`]), and who
//! does it. Joins the parts of the house: it alone knows which backend serves an export.
//!
//! **May not know:** bytes on the wire, what a verb does.

mod announcement;
mod arguments;
mod configuration;
mod findings;
mod journal;
mod listening;
mod manual;
mod offered;
mod serve;
mod service;
mod settings;
mod state;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::report(&error),
    };
    match run(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("comity: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(typed) => return serve::serve(typed),
        Command::Check(typed) => {
            return findings::check(settings::files(&typed.source), typed.json.json);
        }
        Command::Exports(typed) => {
            return offered::show(settings::files(&typed.source), typed.client, typed.json.json);
        }
        Command::Completions(typed) => manual::completions(typed.shell),
        Command::Man(typed) => match typed.out {
            Some(folder) => manual::write(&folder)?,
            None => manual::print(&typed.page)?,
        },
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}
