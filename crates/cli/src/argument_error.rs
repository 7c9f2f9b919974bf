//! Reports arguments that cannot be understood: one line that names the flag, and exit code 2.

use std::process::ExitCode;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Exit code of a usage error.
const USAGE: u8 = 2;

/// Prints why the arguments were refused, or the help or version that was asked for.
pub(crate) fn report(error: &Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A closed pipe is not an error.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    eprintln!("comity: {}; see {} --help", line(error), command(error));
    ExitCode::from(USAGE)
}

/// The command line up to the last subcommand that was recognized, for the message.
fn command(error: &Error) -> String {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip_while(|word| *word != "comity");
    let named: Vec<&str> =
        words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    if named.is_empty() { "comity".to_owned() } else { named.join(" ") }
}

fn line(error: &Error) -> String {
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text.lines().map(str::trim).take_while(|l| !l.is_empty()).collect();
    let mut line = paragraph.join(" ");
    if let Some(rest) = line.strip_prefix("error: ") {
        line = rest.to_owned();
    }
    match suggestion(error) {
        Some(suggestion) => format!("{line} (did you mean {suggestion}?)"),
        None => line,
    }
}

fn suggestion(error: &Error) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(some) => some.first().cloned(),
        _ => None,
    })
}
