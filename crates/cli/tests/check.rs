//! `comity check` and `comity exports`: diagnostics with their place, and the exports of a client.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use common::{Place, comity, is_root, run};
use serde_json::Value;

#[test]
fn a_good_configuration_passes() {
    let place = Place::new();
    let line = format!("{} 192.0.2.0/24(rw) 192.0.2.7(ro,all_squash)\n", place.data().display());
    let exports = place.write("my.exports", &line);
    let said = run(comity().arg("check").arg("--exports").arg(&exports));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    assert_eq!(said.out, "1 export, 0 errors, 0 warnings\n");
}

#[test]
fn a_mistake_has_file_line_and_column() {
    let place = Place::new();
    let data = place.data();
    let text = format!("# comment\n{} *(rw,subtree_check)\n", data.display());
    let exports = place.write("my.exports", &text);
    let said = run(comity().arg("check").arg("--exports").arg(&exports));
    assert_eq!(said.code, Some(1), "{}", said.out);
    let column = data.as_os_str().len() + 7;
    let expected = format!("{}:2:{column}: option subtree_check is refused", exports.display());
    assert!(said.out.starts_with(&expected), "{expected}\n{}", said.out);
}

#[test]
fn findings_can_be_printed_as_json() {
    let place = Place::new();
    let text = format!("{} *(rw,async)\n/nowhere/at/all *(ro)\n", place.data().display());
    let exports = place.write("my.exports", &text);
    let said = run(comity().args(["check", "--json"]).arg("--exports").arg(&exports));
    assert_eq!(said.code, Some(1));
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["ok"], false);
    let findings = report["findings"].as_array().unwrap();
    let of = |severity: &str| findings.iter().filter(|f| f["severity"] == severity).count();
    assert_eq!(of("error"), 1, "{findings:?}");
    assert!(of("warning") >= 1, "{findings:?}");
    let missing = findings.iter().find(|f| f["severity"] == "error").unwrap();
    assert_eq!(missing["line"], 2);
    assert!(missing["text"].as_str().unwrap().contains("create it"), "{missing}");
}

#[test]
fn toml_is_checked_too_and_its_log_level() {
    let place = Place::new();
    let data = place.data();
    let table = |rest: &str| {
        format!("[[export]]\npath = {data:?}\nclients = [{{ client = \"::1\" }}]\n{rest}")
    };
    for (text, code, expected) in [
        (table(""), 0, "1 export, 0 errors"),
        (table("[server]\nprot = 1\n"), 1, "unknown field `prot`"),
        (table("[server]\nlog_level = \"loud\"\n"), 1, ":5:13: \"loud\" is no log level"),
        (table("[server]\nlog_level = \"info,comity_server=debug\"\n"), 0, "0 errors"),
        (table("[server]\nthreads = 0\n"), 1, ":5:11: 0 threads: expected 1 to 1024"),
        (table("[server]\nthreads = 9999\n"), 1, ":5:11: 9999 threads"),
        ("= nothing".to_owned(), 1, ":1:1: "),
    ] {
        let config = place.write("comity.toml", &text);
        let said = run(comity().arg("check").arg("--config").arg(&config));
        assert_eq!(said.code, Some(code), "{text}: {}", said.out);
        assert!(said.out.contains(expected), "{text}: {}", said.out);
    }
}

#[test]
fn serve_refuses_what_check_refuses() {
    let place = Place::new();
    let exports = place.write("my.exports", "/nowhere/at/all *(ro)\n");
    let mut serve = place.serve(&["--exports"]);
    let said = run(serve.arg(&exports));
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.contains(&format!("{}:1:1: ", exports.display())), "{}", said.err);
    assert!(said.err.ends_with("correct it, then run comity check\n"), "{}", said.err);
}

#[test]
fn directories_are_delegated_beside_programs_only_where_the_kernel_reports_their_changes() {
    let place = Place::new();
    let exports = |value: &str| {
        let line = format!("{} *(rw,dir_delegations={value})\n", place.data().display());
        place.write("my.exports", &line)
    };
    let check = |value| run(comity().arg("check").arg("--exports").arg(exports(value)));
    let late = check("local-late");
    assert_eq!(late.code, Some(0), "{}", late.out);
    let waiting = check("local");
    let said = if waiting.code == Some(0) { "1 export, 0 errors" } else { "Linux 6.19" };
    assert!(waiting.out.contains(said), "{}", waiting.out);

    let mut serve = comity();
    serve.args(["serve", "--no-local-locks", "--exports"]).arg(exports("local-late"));
    let refused = run(serve.arg("--state-dir").arg(place.state()));
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains("leave --no-local-locks out"), "{}", refused.err);
}

#[test]
fn serve_with_check_only_checks() {
    let place = Place::new();
    let exports = place.write("my.exports", "/nowhere/at/all *(ro)\n");
    let said = run(place.serve(&["--check", "--exports"]).arg(&exports));
    assert_eq!(said.code, Some(1), "{}", said.out);
    let said = run(place.serve_data().arg("--check"));
    assert_eq!(said.code, Some(0), "{}", said.out);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["exports"], 1);
    assert!(!place.state().exists(), "a check leaves no state behind");
}

#[test]
fn the_exports_of_a_client_are_shown_with_its_most_specific_rules() {
    let place = Place::new();
    let data = place.data();
    let text = format!("{} 192.0.2.0/24(rw) 192.0.2.7(ro,all_squash)\n", data.display());
    let exports = place.write("my.exports", &text);
    let shown = |client: &str, more: &[&str]| {
        let mut command = comity();
        command.arg("exports").arg("--exports").arg(&exports).args(["--client", client]);
        let said = run(command.args(more));
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        said.out
    };
    let path = data.display();
    assert!(shown("192.0.2.9", &[]).starts_with(&format!("{path} 192.0.2.0/24(rw,sync,secure,")));
    let narrow = shown("192.0.2.7", &[]);
    assert!(narrow.starts_with(&format!("{path} 192.0.2.7(ro,")), "{narrow}");
    assert!(narrow.contains("all_squash"), "{narrow}");
    assert_eq!(shown("198.51.100.1", &[]), "nothing is offered to 198.51.100.1\n");
    let json: Value = serde_json::from_str(&shown("192.0.2.7", &["--json"])).unwrap();
    assert_eq!(json["exports"][0]["client"], "192.0.2.7");
    assert_eq!(json["exports"][0]["path"], path.to_string());
}

/// Files that clients make belong to the server's own user then, and would be hidden from the
/// clients.
#[test]
fn check_refuses_a_cloak_that_hides_files_from_the_clients_that_make_them() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let check = |options: &str| {
        let line = format!("{} ::1({options},no_client_cache)\n", place.data().display());
        let exports = place.write("own.exports", &line);
        let as_nobody = run(place.as_nobody(&["check", "--exports"]).arg(&exports));
        let as_root = run(comity().args(["check", "--exports"]).arg(&exports));
        assert_eq!(as_root.code, Some(0), "{}", as_root.out);
        as_nobody
    };
    for cloak in ["cloak_uid=65000-65534:+000", "cloak_gid=65534:-004"] {
        let said = check(&format!("rw,{cloak}"));
        assert_eq!(said.code, Some(1), "{}", said.out);
        assert!(said.out.contains(": the server runs as uid 65534"), "{}", said.out);
        assert!(said.out.contains("run it as root, leave these ids out"), "{}", said.out);
        assert_eq!(check(&format!("ro,{cloak}")).code, Some(0), "nothing is made there");
        let own = format!("rw,all_squash,anonuid=65534,{cloak}");
        assert_eq!(check(&own).code, Some(0), "all callers act as the server's user there");
    }
    assert_eq!(check("rw,cloak_uid=0-65533:+000").code, Some(0), "they are not covered");
}

#[test]
fn a_referral_is_shown_and_explained_and_a_bad_one_is_an_error_with_its_line() {
    let place = Place::new();
    let line = "/srv/away 127.0.0.1(rw,refer=/x@b.example.org+[2001:db8::7])\n";
    let exports = place.write("my.exports", line);
    let said = run(comity().arg("check").arg("--exports").arg(&exports));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    let show = ["exports", "--client", "127.0.0.1"];
    let said = run(comity().args(show).arg("--exports").arg(&exports));
    assert!(said.out.contains("refer=/x@b.example.org+[2001:db8::7]"), "{}{}", said.out, said.err);
    let question = ["explain", "/srv/away", "f", "--from", "127.0.0.1", "--uid", "1", "--gid", "1"];
    let said = run(comity().args(question).arg("--exports").arg(&exports));
    let expected = "NFSv4 clients are referred to /x@b.example.org+[2001:db8::7]";
    assert!(said.out.contains(expected), "{}{}", said.out, said.err);
    let bad = place.write("bad.exports", "# one\n/srv/away *(refer=b.example.org)\n");
    let said = run(comity().arg("check").arg("--exports").arg(&bad));
    assert_eq!(said.code, Some(1), "{}", said.out);
    let expected = format!("{}:2:13: option refer: ", bad.display());
    assert!(said.out.contains(&expected), "{}", said.out);
}

/// The paths of these exports tell nothing: only the kernel's table of mounts does.
#[test]
fn check_says_that_exports_nest_by_bind_mounts() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let path = |name: &str| place.data().join(name).display().to_string();
    ["tree/a b/in", "other", "one", "two", "three"]
        .iter()
        .for_each(|name| std::fs::create_dir_all(path(name)).unwrap());
    let lines = ["one", "two", "three"].map(|name| format!("{} 192.0.2.1(ro)\n", path(name)));
    let exports = place.write("my.exports", &lines.concat());
    let script = "cd \"$1\" && mount --bind 'tree/a b' one && mount --bind 'tree/a b/in' two && \
                  mount --bind other three && exec \"$2\" check --exports \"$3\"";
    let mut shell = std::process::Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script, "sh"]).arg(place.data());
    let said = run(shell.arg(env!("CARGO_BIN_EXE_comity")).arg(&exports));
    let (shown, one, two) = (exports.display(), path("one"), path("two"));
    let expected = format!(
        "{shown}:2:1: warning: {two} lies in {one} ({shown}:1:1), by a bind mount or a link: a \
         file that is open through both is not delegated\n3 exports, 0 errors, 1 warning\n"
    );
    assert_eq!((said.out, said.err.as_str()), (expected, ""));
}
