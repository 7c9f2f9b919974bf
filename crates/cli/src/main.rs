//! The binary `comity`: arguments, commands, output.
//!
//! **Answers:** what a user typed ([`arguments`]), what it means on this machine ([`settings`]),
//! which crate performs it, and how the result is printed.
//!
//! **May not know:** bytes on the wire, what a verb does.

mod address_announcement;
mod argument_error;
mod arguments;
mod block_device;
mod cache_arguments;
mod cache_files;
mod cache_status;
mod cache_verify;
mod check;
mod clients;
mod cluster;
mod cluster_addresses;
mod cluster_arguments;
mod cluster_drain;
mod cluster_move;
mod common_arguments;
mod control_client;
mod data_server_arguments;
mod explain;
mod explain_arguments;
mod exports_command;
mod far_arguments;
mod far_export;
mod key_arguments;
mod keys;
mod load_advice;
mod load_arguments;
mod load_calibrate;
mod manual;
mod migrate;
mod migrate_arguments;
mod mount;
mod mount_cache;
mod mount_channel;
mod mount_client;
mod mount_control;
mod mount_helper;
mod mount_metrics;
mod mount_number;
mod mount_options;
mod mount_request;
mod mount_socket;
mod mount_source;
mod other_process;
mod page_arguments;
mod placement_add;
mod placement_arguments;
mod placement_bytes;
mod placement_check;
mod placement_drain;
mod placement_label;
mod placement_move;
mod placement_pages;
mod placement_rebuild;
mod placement_resilver;
mod placement_status;
mod placement_toml;
mod serve;
mod settings;
mod stdout;
mod top;
mod top_arguments;
mod unmount;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use cache_arguments::CacheCommand;
use cluster_arguments::ClusterCommand;
use load_arguments::LoadCommand;
use mount_request::FileVerb;
use placement_arguments::PlacementCommand;

fn main() -> ExitCode {
    if mount_helper::is_called() {
        return mount_helper::run();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return argument_error::report(&error),
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
        Command::Serve(typed) => serve::serve(*typed),
        Command::Check(typed) => {
            let sources = settings::files(&typed.source);
            check::check((sources, None), None, typed.state.state_dir, typed.json.json)
        }
        Command::Exports(typed) => {
            let sources = settings::files(&typed.source);
            match sources.is_empty() {
                true => control_client::exports(typed.state, typed.client, typed.json.json),
                false => exports_command::show(sources, typed.client, typed.json.json),
            }
        }
        Command::Explain(typed) => explain::show(typed),
        Command::Reload(typed) => control_client::reload(typed),
        Command::Status(typed) => control_client::status(typed),
        Command::Top(typed) => top::show_load(&typed),
        Command::Clients(typed) => clients::show(typed),
        Command::Evict(typed) => clients::evict(typed),
        Command::Log(typed) => control_client::log(typed),
        Command::Key(typed) => keys::key::perform(typed),
        Command::Account(typed) => keys::account::perform(typed),
        Command::Id(typed) => keys::id::show(&typed),
        Command::Grant(typed) => keys::grant::print(&typed),
        Command::Submit(typed) => keys::submit::submit(&typed),
        Command::Grants(typed) => keys::server::grants(&typed),
        Command::Revoke(typed) => keys::server::revoke(typed),
        Command::Fetch(typed) => keys::server::fetch(&typed),
        Command::Why(typed) => keys::server::why(typed),
        Command::Whoami(typed) => keys::server::whoami(&typed),
        Command::Mount(typed) => mount::mount(&typed),
        Command::Umount(typed) => unmount::unmount(&typed),
        Command::Cache(typed) => cache(&typed),
        Command::Placement(typed) => placement(typed),
        Command::Migrate(typed) => migrate::perform(&typed),
        Command::Cluster(ClusterCommand::Status(typed)) => cluster::print(typed),
        Command::Cluster(ClusterCommand::Move(typed)) => cluster_move::perform(&typed),
        Command::Cluster(ClusterCommand::Drain(typed)) => cluster_drain::drain(&typed),
        Command::Cluster(ClusterCommand::Undrain(typed)) => cluster_drain::undrain(typed),
        Command::Cluster(ClusterCommand::Addresses(typed)) => cluster_addresses::follow(typed),
        Command::Load(LoadCommand::Advise(typed)) => load_advice::perform(&typed),
        Command::Load(LoadCommand::Calibrate(typed)) => load_calibrate::perform(&typed),
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

fn placement(command: PlacementCommand) -> anyhow::Result<ExitCode> {
    match command {
        PlacementCommand::Add(typed) => placement_add::perform(&typed),
        PlacementCommand::Check(typed) => placement_check::perform(&typed),
        PlacementCommand::Drain(typed) => placement_drain::perform(&typed),
        PlacementCommand::Label(typed) => placement_label::perform(&typed),
        PlacementCommand::Rebuild(typed) => placement_rebuild::perform(&typed),
        PlacementCommand::Resilver(typed) => placement_resilver::perform(&typed),
        PlacementCommand::Status(typed) => placement_status::print(typed),
    }
}

fn cache(command: &CacheCommand) -> anyhow::Result<ExitCode> {
    match command {
        CacheCommand::Status(typed) => cache_status::print(typed),
        CacheCommand::Fill(typed) => cache_files::perform(typed, FileVerb::Fill),
        CacheCommand::Pin(typed) => cache_files::perform(typed, FileVerb::Pin),
        CacheCommand::Drop(typed) => cache_files::perform(typed, FileVerb::Drop),
        CacheCommand::Verify(typed) => cache_verify::perform(typed),
    }
}
