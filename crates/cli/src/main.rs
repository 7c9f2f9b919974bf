//! One binary: arguments, plan, run.
//!
//! **Answers:** what a user typed ([`arguments`]), what it means here and now ([`settings`]), and
//! who does it. Joins the parts of the house: it alone knows which backend serves an export.
//!
//! **May not know:** bytes on the wire, what a verb does.

mod announcement;
mod arguments;
mod clients;
mod configuration;
mod copier;
mod directory;
mod errands;
mod explain;
mod findings;
mod journal;
mod keeper;
mod limits;
mod listening;
mod locals;
mod manager;
mod manual;
mod messenger;
mod monitor;
mod offered;
mod openers;
mod remote;
mod roster;
mod said;
mod serve;
mod service;
mod settings;
mod state;
mod statuses;
mod steward;
mod storage;
mod tallies;
mod usage;
mod versions;

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
        Command::Serve(typed) => serve::serve(typed),
        Command::Check(typed) => findings::check(settings::files(&typed.source), typed.json.json),
        Command::Exports(typed) => {
            let sources = settings::files(&typed.source);
            match sources.is_empty() {
                true => remote::exports(typed.state, typed.client, typed.json.json),
                false => offered::show(sources, typed.client, typed.json.json),
            }
        }
        Command::Explain(typed) => explain::show(typed),
        Command::Reload(typed) => remote::reload(typed),
        Command::Status(typed) => remote::status(typed),
        Command::Clients(typed) => clients::show(typed),
        Command::Evict(typed) => clients::evict(typed),
        Command::Log(typed) => remote::log(typed),
        Command::Bench(typed) => comity_bench::command::perform(&typed),
        Command::Completions(typed) => {
            manual::completions(typed.shell);
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(typed) => {
            match typed.out {
                Some(folder) => manual::write(&folder)?,
                None => manual::print(&typed.page)?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
