//! `comity load advise`: what would change if an export moved.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::Said;
use crate::pair::Pair;

/// Time in which a peer has to tell its load.
const PATIENCE: Duration = Duration::from_secs(5);

fn json_of(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err))
}

/// Both servers of the pair have the same processors, lines and memory.
#[test]
fn a_move_to_a_server_on_the_same_machine_is_not_advised() {
    let pair = Pair::new();
    let said = pair.ask(0, &["load", "advise", "--json"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let answer = json_of(&said);
    let one = &answer["moves"][0];
    assert_eq!(one["exports"], json!([pair.place.data()]));
    assert_eq!((&one["to"], &one["pays"]), (&json!("b"), &json!(false)));
    // All exports move together, so that all calls do.
    assert_eq!(one["part"], 1.0);
    assert_eq!(one["obstacle"], Value::Null, "{answer}");
    let doubts = one["doubts"].as_array().unwrap();
    assert!(doubts.contains(&json!("this server has run for less than a minute")), "{doubts:?}");
    let loads = [&answer["here"], &answer["peers"][0]["load"]];
    assert!(loads.iter().all(|load| load["slowdown"].as_f64().unwrap() >= 1.0), "{answer}");

    let said = pair.ask(0, &["load", "advise", "--with", "b", "--with", "b"]);
    let expected = ["this server: ", "b: "];
    assert!(said.out.lines().zip(expected).all(|(line, start)| line.starts_with(start)));
    assert_eq!(said.out.matches("doubt: the other server has run").count(), 1, "{}", said.out);
    assert!(said.out.ends_with("advice: leave the exports where they are\n"), "{}", said.out);
}

#[test]
fn an_export_that_cannot_move_is_named_with_the_reason() {
    let pair = Pair::new();
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    let said = pair.ask(0, &["load", "advise"]);
    assert!(
        said.out.ends_with(
            "there is no export here that could move to a peer whose load is \
                                known\n"
        ),
        "{}",
        said.out
    );
    let config = pair.place.path("b.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("\"rw\"", "\"rw\", \"crossmnt\"");
    std::fs::write(&config, text).unwrap();
    assert_eq!(pair.ask(1, &["reload"]).code, Some(0));
    let said = pair.ask(1, &["load", "advise"]);
    assert!(said.out.contains("  cannot move: "), "{}", said.out);
    assert!(said.out.contains("has the option crossmnt"), "{}", said.out);
}

#[test]
fn peers_that_do_not_exist_or_do_not_answer_are_told() {
    let pair = Pair::new();
    let said = pair.ask(0, &["load", "advise", "--with", "c"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("the configuration has no [[peer]] c"), "{}", said.err);
    pair.servers[1].signal(Signal::KILL);
    let said = pair.ask(0, &["load", "advise"]);
    assert_eq!(said.code, Some(1), "nobody has answered");
    assert!(said.out.contains("b: its load is not known: "), "{}", said.out);
}

/// A peer that accepts connections and says nothing delays the command by its patience, and no
/// other command.
#[test]
fn a_silent_peer_delays_nobody_else() {
    let mut pair = Pair::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    pair.ports[1] = silent.local_addr().unwrap().port();
    pair.configure();
    thread::scope(|scope| {
        let begun = Instant::now();
        let asked = scope.spawn(|| pair.ask(0, &["load", "advise"]));
        while begun.elapsed() < PATIENCE / 2 {
            let one = Instant::now();
            assert_eq!(pair.ask(0, &["status"]).code, Some(0));
            assert!(one.elapsed() < PATIENCE, "{:?}", one.elapsed());
        }
        let second = pair.ask(0, &["load", "advise"]);
        assert!(second.err.contains("another command asks"), "{}", second.err);
        let said = asked.join().unwrap();
        assert!(begun.elapsed() >= PATIENCE, "{:?}", begun.elapsed());
        assert!(said.out.contains("b: its load is not known: "), "{}", said.out);
    });
}
