use super::*;

/// A trace in the project's own format.
fn trace(text: &str) -> Vec<Event> {
    read(text).unwrap()
}

fn run(policy: PolicyName, events: &[Event]) -> SimulatedCalls {
    simulate(Settings { policy, ..Settings::default() }, events)
}

/// A client that searches a missing name again and again. The first search also looks up the
/// directory itself; each later one finds the root of the mount out of date.
const SEARCH: &str = "\
0 1 lookup /bin ls missing
40 1 lookup /bin ls missing
80 1 lookup /bin ls missing
300 1 lookup /bin ls missing
";

#[test]
fn a_missing_name_is_asked_for_once_under_a_delegation() {
    let events = trace(SEARCH);
    let without = run(PolicyName::Never, &events).calls;
    assert_eq!((without.lookups, without.getattrs, without.requests), (3, 0, 2));
    let with = run(PolicyName::Always, &events).calls;
    assert_eq!((with.lookups, with.getattrs, with.requests), (2, 0, 2));
    assert_eq!(with.total(), 4, "the root and the directory are delegated, and nothing else");
}

#[test]
fn a_change_by_another_client_recalls_and_its_own_does_not() {
    let own = trace(&format!("{SEARCH}310 1 create /bin own\n320 1 lookup /bin own found\n"));
    let calls = run(PolicyName::Always, &own).calls;
    assert_eq!((calls.recalls, calls.lookups, calls.changes), (0, 3, 1));
    let others = trace(&format!("{SEARCH}310 2 create /bin ls\n320 1 lookup /bin ls found\n"));
    let tally = run(PolicyName::Always, &others);
    assert_eq!((tally.calls.recalls, tally.calls.returns), (1, 1));
    assert_eq!(tally.calls.changes, 1, "the change waits at the server");
    assert_eq!((tally.calls.lookups, tally.stale_answers), (5, 0));
}

#[test]
fn a_program_on_the_server_recalls_too() {
    let events = trace(&format!("{SEARCH}310 local remove /bin x\n"));
    let calls = run(PolicyName::Always, &events).calls;
    assert_eq!((calls.recalls, calls.changes), (1, 0));
}

#[test]
fn without_a_delegation_an_answer_may_be_stale_and_under_one_it_is_not() {
    let stale = |policy, text: &str| run(policy, &trace(text)).stale_answers;
    let looked = "0 1 lookup /d a missing\n0 1 lookup /d b missing\n1 2 create /d a\n\
                  2 1 lookup /d a found\n";
    assert_eq!(stale(PolicyName::Never, looked), 1);
    assert_eq!(stale(PolicyName::Always, looked), 0);
    let listed = "0 1 list /d\n0 1 list /d\n0 1 lookup /d b found\n1 2 remove /d b\n\
                  2 1 lookup /d b missing\n";
    assert_eq!(stale(PolicyName::Never, listed), 1);
    assert_eq!(stale(PolicyName::Always, listed), 0);
}

#[test]
fn a_listing_answers_look_ups_of_its_names_and_a_delegated_one_is_repeated_from_memory() {
    let events = trace(
        "0 1 list /d\n1 1 lookup /d a found\n2 1 list /d\n3 1 list /d\n4 1 lookup /d a found\n",
    );
    let calls = run(PolicyName::Always, &events).calls;
    assert_eq!((calls.lookups, calls.accesses), (1, 1), "of the directory itself");
    assert_eq!((calls.readdirs, calls.requests), (2, 1), "the second listing asks");
}

#[test]
fn an_entry_without_attributes_makes_a_listing_cost_a_call_once() {
    let settings = Settings {
        policy: PolicyName::Always,
        notification_delay_microseconds: Some(0),
        ..Settings::default()
    };
    let lists = "0 1 list /d\n1 1 list /d\n2 1 lookup /d a missing\n3 2 create /d a\n";
    let readdirs =
        |more: &str| simulate(settings, &trace(&format!("{lists}{more}"))).calls.readdirs;
    assert_eq!(readdirs(""), 2);
    assert_eq!(readdirs("4 1 list /d\n"), 3);
    assert_eq!(readdirs("4 1 list /d\n5 1 list /d\n"), 3);
}

#[test]
fn notifications_are_gathered_and_an_overflow_recalls() {
    let changes = |count: usize| -> String {
        (0..count).map(|number| format!("1 2 create /d f{number}\n")).collect()
    };
    let settings = Settings {
        policy: PolicyName::Always,
        notification_delay_microseconds: Some(500_000),
        ..Settings::default()
    };
    let looks = "0 1 list /d\n0.1 1 list /d\n";
    let few = trace(&format!("{looks}{}2 1 list /d\n", changes(10)));
    let tally = simulate(settings, &few);
    assert_eq!((tally.calls.notifications, tally.notified, tally.calls.recalls), (1, 10, 0));
    assert_eq!(tally.calls.changes, 10);
    let many = trace(&format!("{looks}{}", changes(100)));
    let tally = simulate(settings, &many);
    assert_eq!((tally.calls.notifications, tally.calls.recalls), (0, 1));
}

/// A trace in which a client lists twenty directories twice each.
fn twenty_directories() -> Vec<Event> {
    let lines =
        |number: usize| format!("{number} 1 list /d{number}\n{number}.1 1 list /d{number}\n");
    trace(&(0..20).map(lines).collect::<String>())
}

#[test]
fn a_directory_that_a_client_forgets_is_given_back() {
    let settings =
        Settings { policy: PolicyName::Always, cached_directories: 5, ..Settings::default() };
    let tally = simulate(settings, &twenty_directories());
    assert_eq!((tally.held_max, tally.calls.returns, tally.grants), (5, 16, 21));
}

#[test]
fn the_server_grants_no_more_than_its_bound() {
    let settings =
        Settings { policy: PolicyName::Always, delegations_max: 3, ..Settings::default() };
    assert_eq!(simulate(settings, &twenty_directories()).held_max, 3);
}

/// Checks Wickman's result: in searches of the directories of PATH, over 90 % of LOOKUPs are saved.
#[test]
fn searches_reach_the_figures_of_citi_where_directories_are_forgotten_soon() {
    let events = Pattern::Path.trace(1, 2, 40);
    let settings = |policy| Settings { policy, ..Settings::default() };
    let without = simulate(settings(PolicyName::Never), &events);
    let with = simulate(settings(PolicyName::Always), &events);
    assert!(with.calls.getattrs * 20 < without.calls.getattrs, "{with:?} {without:?}");
    assert!(with.calls.total() < without.calls.total());
}

/// A trace of a client that looks for twenty missing names each five seconds, while another client
/// makes a file now and then.
fn searches_and_changes(pause_seconds: usize) -> Vec<Event> {
    let mut lines = Vec::new();
    for at in (0..2000).step_by(5) {
        lines.extend((0..20).map(|name| (at * 10, format!("{at} 1 lookup /d n{name} missing\n"))));
    }
    for at in (3..2000).step_by(pause_seconds) {
        lines.push((at * 10 + 1, format!("{at}.1 2 create /d f{at}\n")));
    }
    lines.sort_by_key(|(at, _)| *at);
    trace(&lines.into_iter().map(|(_, line)| line).collect::<String>())
}

#[test]
fn the_adaptive_policy_saves_more_than_second_ask_where_delegations_are_worth_it() {
    let believed_never = Settings { believed_microseconds: (0, 0), ..Settings::default() };
    let traces = [
        (Settings::default(), Pattern::Mail.trace(1, 5, 20)),
        (Settings::default(), Pattern::Update.trace(1, 2, 3)),
        (believed_never, searches_and_changes(100)),
    ];
    for (settings, events) in traces {
        let calls = |policy| simulate(Settings { policy, ..settings }, &events).calls.total();
        let (adaptive, second_ask) = (calls(PolicyName::Adaptive), calls(PolicyName::SecondAsk));
        assert!(adaptive <= second_ask, "{adaptive} {second_ask}");
    }
}

#[test]
fn the_adaptive_policy_causes_few_calls_where_delegations_are_not_worth_it() {
    let events: String = (0..1000)
        .map(|at| format!("{at} 1 lookup /d n{at} missing\n{at}.5 2 create /d f{at}\n"))
        .collect();
    let events = trace(&events);
    let recalls = |policy| run(policy, &events).calls.recalls;
    let (adaptive, always) = (recalls(PolicyName::Adaptive), recalls(PolicyName::Always));
    assert!(adaptive * 10 < always, "{adaptive} {always}");
}

/// RFC 8881, 10.9.4: a server recalls delegations that cause too many notifications.
#[test]
fn the_adaptive_policy_gives_up_a_holder_that_is_told_of_changes_and_never_looks() {
    let creates = (0..1000).map(|at| format!("{}.{} 2 create /d f{at}\n", 30 + at / 10, at % 10));
    let looks = "0 1 list /d\n10 1 list /d\n20 1 list /d\n";
    let events = trace(&format!("{looks}{}", creates.collect::<String>()));
    let notified = |policy| {
        let settings =
            Settings { policy, notification_delay_microseconds: Some(0), ..Settings::default() };
        let calls = simulate(settings, &events).calls;
        (calls.notifications, calls.recalls)
    };
    assert_eq!(notified(PolicyName::SecondAsk), (1000, 0));
    assert_eq!(notified(PolicyName::Adaptive), (16, 1));
}

#[test]
fn a_pattern_is_the_same_for_the_same_seed() {
    for pattern in <Pattern as clap::ValueEnum>::value_variants() {
        let trace = pattern.trace(3, 2, 2);
        assert!(!trace.is_empty() && trace == pattern.trace(3, 2, 2), "{pattern:?}");
        assert!(trace != pattern.trace(4, 2, 2), "{pattern:?}");
        assert_eq!(read(&write(&trace)).unwrap(), trace, "{pattern:?}");
    }
}
