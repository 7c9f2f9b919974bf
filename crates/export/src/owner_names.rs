//! The names of a domain's users and groups: in the TOML file itself, and in files in the format of
//! passwd(5) and group(5).

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use comity_idmap::{NameError, Owners, OwnersBuilder};
use comity_vfs::{Gid, Uid};
use serde::Deserialize;
use toml::Spanned;

use crate::Location;
use crate::config_reader::Reader;
use crate::file_text::text_of;
use crate::limits::OWNERS_MAX;

/// The table of a domain with the names of its users and groups.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnersTable {
    /// The text after the `@`.
    domain: Spanned<String>,
    #[serde(default)]
    users: HashMap<Spanned<String>, Spanned<i64>>,
    #[serde(default)]
    groups: HashMap<Spanned<String>, Spanned<i64>>,
    /// A file in the format of passwd(5).
    users_file: Option<Spanned<String>>,
    /// A file in the format of group(5).
    groups_file: Option<Spanned<String>>,
}

/// A name for a number, and its location.
struct Given {
    name: String,
    id: i64,
    place: Location,
}

#[derive(Clone, Copy)]
enum Side {
    User,
    Group,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::User) { "user" } else { "group" })
    }
}

/// Reads all names of a domain, and reports mistakes.
pub(crate) fn read(table: &OwnersTable, reader: &mut Reader<'_>) -> Option<Owners> {
    let mut owners = match OwnersBuilder::new(table.domain.get_ref()) {
        Ok(owners) => owners,
        Err(what) => {
            reader.error(&table.domain.span(), format!("{:?} {what}", table.domain.get_ref()));
            return None;
        }
    };
    let users = given(&table.users, table.users_file.as_ref(), reader)?;
    let groups = given(&table.groups, table.groups_file.as_ref(), reader)?;
    if users.is_empty() && groups.is_empty() {
        let what = "owners without a name: everybody stays a number";
        reader.diagnostics.warning(&reader.place(&table.domain.span()), what);
    }
    let mut fine = true;
    for (side, names) in [(Side::User, users), (Side::Group, groups)] {
        if let Some(Given { place, .. }) = names.get(OWNERS_MAX) {
            reader.diagnostics.error(place, format!("over {OWNERS_MAX} names of {side}s"));
            return None;
        }
        for given in names {
            fine &= add(&mut owners, side, &given, reader);
        }
    }
    fine.then(|| owners.build())
}

/// Returns the names: first those of the table itself, in the order in which they are written.
fn given(
    table: &HashMap<Spanned<String>, Spanned<i64>>,
    file: Option<&Spanned<String>>,
    reader: &mut Reader<'_>,
) -> Option<Vec<Given>> {
    let mut written: Vec<_> = table.iter().collect();
    written.sort_by_key(|(name, _)| name.span().start);
    let given = |(name, id): (&Spanned<String>, &Spanned<i64>)| Given {
        name: name.get_ref().clone(),
        id: *id.get_ref(),
        place: reader.place(&name.span()),
    };
    let mut all: Vec<Given> = written.into_iter().map(given).collect();
    if let Some(file) = file {
        all.extend(in_file(file, reader)?);
    }
    Some(all)
}

fn in_file(path: &Spanned<String>, reader: &mut Reader<'_>) -> Option<Vec<Given>> {
    let at = Path::new(path.get_ref());
    if !at.is_absolute() {
        reader.error(&path.span(), format!("{:?} is no absolute path", path.get_ref()));
        return None;
    }
    let (file, text) = text_of(at, reader.diagnostics)?;
    let mut all = Vec::new();
    for (number, line) in (1..).zip(String::from_utf8_lossy(&text).lines()) {
        let place = Location { file: Arc::clone(&file), line: number, column: 1 };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut fields = line.split(':');
        match (fields.next(), fields.nth(1).map(str::parse)) {
            (Some(name), Some(Ok(id))) => all.push(Given { name: name.to_owned(), id, place }),
            _ => {
                let what = "expected NAME:PASSWORD:NUMBER, as in passwd(5) and group(5)";
                reader.diagnostics.error(&place, what);
                return None;
            }
        }
    }
    Some(all)
}

fn add(owners: &mut OwnersBuilder, side: Side, given: &Given, reader: &mut Reader<'_>) -> bool {
    let Given { name, id, place } = given;
    let Ok(number) = u32::try_from(*id) else {
        reader.diagnostics.error(place, format!("{side} {name:?}: {id} {}", NameError::Id));
        return false;
    };
    let added = match side {
        Side::User => owners.add_user(name, Uid::new(number)),
        Side::Group => owners.add_group(name, Gid::new(number)),
    };
    match added {
        Ok(None) => true,
        Ok(Some(first)) => {
            let what = format!("{side} {number} is called {first} already: that is what is said");
            reader.diagnostics.warning(place, what);
            true
        }
        Err(NameError::Id) => {
            reader.diagnostics.error(place, format!("{side} {name:?}: {number} {}", NameError::Id));
            false
        }
        Err(what) => {
            reader.diagnostics.error(place, format!("{side} {name:?} {what}"));
            false
        }
    }
}
