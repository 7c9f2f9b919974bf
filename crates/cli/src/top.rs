//! `comity top`: how loaded a running server is, live in the terminal.

mod input;
mod numbers;
mod readout;
mod screen;
mod tables;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use comity_server::control::Request;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use crate::control_client::ask;
use crate::stdout::{say, show};
use crate::top_arguments::TopArguments;

use input::Input;
use readout::Readout;

/// Columns of the output of `--once`.
const ONCE_COLUMNS: u16 = 80;

/// Time between two samples of the server.
const SAMPLE: Duration = Duration::from_secs(1);

/// Shows the load of a server, once or until the user quits.
///
/// # Errors
/// If no server can be asked, or there is no terminal to show it on.
pub(crate) fn show_load(typed: &TopArguments) -> Result<ExitCode> {
    match (typed.once || typed.json.json, std::io::stdout().is_terminal()) {
        (true, _) => once(typed)?,
        (false, true) => ratatui::run(|terminal| live(typed, terminal))?,
        (false, false) => bail!("standard output is no terminal; use --once, or --once --json"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the load after two samples, as a server that has just started has no rates before.
fn once(typed: &TopArguments) -> Result<()> {
    let mut answer = read(typed)?;
    if answer["resources"].as_array().is_none_or(Vec::is_empty) {
        thread::sleep(SAMPLE + SAMPLE / 4);
        answer = read(typed)?;
    }
    if typed.json.json {
        say(&answer);
        return Ok(());
    }
    let readout = Readout::parse(answer)?;
    let size = (ONCE_COLUMNS, screen::printed_lines(&readout));
    let text = screen::text(&readout, &Input::without_keys(), size)?;
    show(format!("{}\n", text.trim_end()).as_bytes());
    Ok(())
}

fn live(typed: &TopArguments, terminal: &mut DefaultTerminal) -> Result<()> {
    let delay = Duration::from_secs(typed.delay.into());
    let mut input = Input::default();
    let mut readout = Readout::parse(read(typed)?)?;
    let mut due = Instant::now() + delay;
    while !input.quits {
        terminal.draw(|frame| screen::draw(frame, &readout, &input))?;
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left).context("cannot read the keyboard")? {
            if let Event::Key(key) = event::read()? {
                input.press(key);
            }
        } else {
            due = Instant::now() + delay;
            if !input.is_paused {
                readout = Readout::parse(read(typed)?)?;
            }
        }
    }
    Ok(())
}

fn read(typed: &TopArguments) -> Result<serde_json::Value> {
    let mut answer = ask(typed.state.clone(), &Request::Load)?;
    let waits = ask(typed.state.clone(), &Request::Waits { client: None })?;
    answer["waits"] = waits["waits"].clone();
    answer["waits_count"] = waits["waits_count"].clone();
    Ok(answer)
}
