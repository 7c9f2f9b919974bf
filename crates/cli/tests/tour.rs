//! docs/tour-two-sites.md and docs/tour-grants.md show exactly what the program prints.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::process::Command;

use common::{Place, Said, is_root, run};

/// Makes the folders of the page in a mount namespace, under their names on the page, and the two
/// files that it mentions.
const FURNISHED: &str = "set -e
    mount -t tmpfs tmpfs /srv
    sed -n 's/^path = \"\\(.*\\)\"/\\1/p' comity.toml | xargs mkdir -p
    cd /srv/plans
    touch bridge diary
    chmod 660 bridge; chown 101005:100100 bridge
    chmod 600 diary; chown 101005:101005 diary
    cd - > /dev/null
    set +e
";

/// Makes the site of the page about grants: a network namespace with a host `server`, the user
/// alice, her folders, the running server, and the keys of all people. `as` continues the script as
/// another person.
const SITE_OF_GRANTS: &str = "set -e
    ip link set lo up
    mount -t tmpfs tmpfs /srv
    mount -t tmpfs tmpfs /var/lib
    { cat /etc/passwd; echo alice:x:1000:1000::/:/bin/false; } > passwd
    mount --bind passwd /etc/passwd
    { cat /etc/hosts; echo 127.0.0.1 server; } > hosts
    mount --bind hosts /etc/hosts
    mkdir -p /srv/p/report /srv/p/private
    echo 'the text' > /srv/p/report/text
    echo secret > /srv/p/private/diary
    chown -R 1000:1000 /srv/p
    comity serve --exports exports --no-register --listen 127.0.0.1 > served 2>&1 &
    trap \"kill $!\" EXIT
    for try in $(seq 200); do grep -q Listening served && break; sleep 0.1; done
    set +e
    as() { export XDG_CONFIG_HOME=$PWD/$1; }
    for who in alice bob carol dave; do
        as $who
        comity key new > $who.pub 2> /dev/null
    done
";

/// The people of that page. A prompt in it begins with one of these names.
const PEOPLE: [&str; 5] = ["admin", "alice", "bob", "carol", "dave"];

/// The lines of the code blocks of a page that have no language.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix('\n')).collect()
}

/// Runs a script in namespaces of its own, with the program in its search path.
fn in_namespaces(place: &Place, namespaces: &str, script: &str) -> Said {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_comity")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("unshare");
    command.args([namespaces, "sh", "-c", script]).env("PATH", path);
    for variable in ["COMITY_SERVER", "COMITY_KEY", "XDG_STATE_HOME"] {
        command.env_remove(variable);
    }
    run(command.current_dir(place.path(".")))
}

fn may_unshare(namespaces: &str) -> bool {
    let unshared = || Command::new("unshare").args([namespaces, "true"]).status();
    let may = is_root() && unshared().is_ok_and(|it| it.success());
    if !may {
        eprintln!("skipped: it needs namespaces of its own (root, unshare)");
    }
    may
}

#[test]
fn the_tour_shows_what_the_program_prints() {
    if !may_unshare("-m") {
        return;
    }
    let page = include_str!("../../../docs/tour-two-sites.md");
    let configuration = page.split("```").nth(1).unwrap();
    let place = Place::new();
    place.write("comity.toml", configuration.strip_prefix("toml\n").unwrap());
    let shown: String =
        blocks(page).into_iter().filter(|block| block.starts_with("$ comity ")).collect();
    let commands: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert_eq!(commands.len(), 6);
    let asked = commands.iter().map(|command| format!("echo '$ {command}'; {command} 2>&1\n"));
    let script = FURNISHED.to_owned() + &asked.collect::<String>();
    let said = in_namespaces(&place, "-m", &script);
    assert_eq!(said.out, shown, "{}", said.err);
}

#[test]
fn the_tour_of_grants_shows_what_the_program_prints() {
    if !may_unshare("-mn") {
        return;
    }
    let page = include_str!("../../../docs/tour-grants.md");
    let place = Place::new();
    place.write("exports", "/srv  *(rw,sec=key,xprtsec=mtls)\n");
    let shown: String =
        blocks(page).into_iter().filter(|block| command_of(block).is_some()).collect();
    let commands: Vec<(&str, &str)> = shown.lines().filter_map(command_of).collect();
    assert_eq!(commands.len(), shown.lines().filter(|line| line.contains("$ ")).count());
    let asked = commands.iter().map(|(who, command)| {
        format!("as {who}\ncat << 'END'\n{who}$ {command}\nEND\n{{ {command}\n}} 2>&1\n")
    });
    let script = SITE_OF_GRANTS.to_owned() + &asked.collect::<String>();
    let said = in_namespaces(&place, "-mn", &script);
    assert_eq!(leveled(&said.out), leveled(&shown), "{}", said.err);
}

/// Returns the person and the command if a line begins with a prompt.
fn command_of(line: &str) -> Option<(&str, &str)> {
    let (who, command) = line.split_once("$ ")?;
    PEOPLE.contains(&who).then_some((who, command))
}

/// Replaces keys, ids, digests and times by their kinds and by numbers in the order in which they
/// first appear, so that the outputs of two runs can be compared.
fn leveled(text: &str) -> String {
    let mut met: Vec<&str> = Vec::new();
    let level = |piece| {
        let (value, end) = match str::strip_suffix(piece, [' ', '\n', '"', ')', ';', ':']) {
            Some(value) => (value, &piece[value.len()..]),
            None => (piece, ""),
        };
        let (value, colon) = match value.strip_suffix(':') {
            Some(value) => (value, ":"),
            None => (value, ""),
        };
        let Some(kind) = kind(value) else { return piece.to_owned() };
        let number = met.iter().position(|known| *known == value).unwrap_or(met.len());
        if number == met.len() {
            met.push(value);
        }
        format!("{kind} {number}{colon}{end}")
    };
    text.split_inclusive([' ', '\n', '"', '(', ')', ';']).map(level).collect()
}

/// The kind of a value that differs between runs.
fn kind(value: &str) -> Option<&'static str> {
    let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = value.strip_prefix('x').and_then(|rest| rest.strip_suffix('z'));
    if ["ed25519:", "ed25519-base64:"].iter().any(|start| value.starts_with(start)) {
        Some("key")
    } else if value.starts_with("SHA256:") {
        Some("fingerprint")
    } else if value.len() == 64 && is_hexadecimal(value) {
        Some("digest")
    } else if id.is_some_and(|id| !id.is_empty() && is_hexadecimal(id)) {
        Some("id")
    } else {
        None
    }
}
