//! `comity account`: binds keys to users.

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use serde_json::Value;

use super::key_choice::public_key;
use crate::control_client::ask;
use crate::key_arguments::{Account, AccountBind, AccountList, AccountUnbind};
use crate::stdout::say;

/// Performs a command of `comity account`.
///
/// # Errors
/// If no server can be asked, or it refuses.
pub(crate) fn perform(command: Account) -> Result<ExitCode> {
    match command {
        Account::Bind(AccountBind { user, key, state }) => {
            let key = public_key(&key)?;
            ask(state, &Request::BindAccount { user: user.clone(), key: key.to_string() })?;
            say(format_args!("{key} acts as {user}"));
        }
        Account::Unbind(AccountUnbind { key, state }) => {
            let key = public_key(&key)?;
            ask(state, &Request::UnbindAccount { key: key.to_string() })?;
            say(format_args!("{key} has no account"));
        }
        Account::List(AccountList { state, json }) => {
            let accounts = ask(state, &Request::Accounts)?;
            if json.json { say(&accounts) } else { list(&accounts) }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(accounts: &Value) {
    say("USER              KEY");
    for account in accounts.as_array().into_iter().flatten() {
        let text = |name: &str| account[name].as_str().unwrap_or_default();
        say(format_args!("{:<17} {} {}", text("user"), text("key"), text("comment")));
    }
}
