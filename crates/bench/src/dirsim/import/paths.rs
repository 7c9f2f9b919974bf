//! Paths, and the look-ups of their components.

use crate::dirsim::event::Action;

/// An absolute path without `.` and `..`.
pub(super) fn absolute(base: &str, path: &str) -> String {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The directory and the name of an absolute path; `None` for `/`.
pub(super) fn split(path: &str) -> Option<(String, String)> {
    let (directory, name) = path.rsplit_once('/')?;
    let directory = if directory.is_empty() { "/" } else { directory };
    (!name.is_empty()).then(|| (directory.to_owned(), name.to_owned()))
}

/// The look-ups of all directories above an object.
pub(super) fn way(path: &str) -> Vec<Action> {
    let slashes = path.match_indices('/').map(|(at, _)| at).skip(1);
    let above = slashes.filter_map(|at| split(path.get(..at)?));
    above.map(|(directory, name)| Action::Lookup { directory, name, found: true }).collect()
}

/// The look-ups of an object and of all directories above it.
pub(super) fn looked_up(path: &str, found: bool) -> Vec<Action> {
    let mut actions = way(path);
    let last = split(path).map(|(directory, name)| Action::Lookup { directory, name, found });
    actions.extend(last);
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_looked_up_name_by_name() {
        let lookup = |directory: &str, name: &str, found| {
            let (directory, name) = (directory.to_owned(), name.to_owned());
            Action::Lookup { directory, name, found }
        };
        let path = absolute("/usr/bin", "../lib//./x");
        assert_eq!(path, "/usr/lib/x");
        let expected =
            [lookup("/", "usr", true), lookup("/usr", "lib", true), lookup("/usr/lib", "x", false)];
        assert_eq!(looked_up(&path, false), expected);
        assert_eq!(looked_up("/", true), []);
    }
}
