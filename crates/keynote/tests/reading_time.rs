//! The time that it takes to read an assertion, for texts that are as bad as an attacker can make
//! them.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use comity_keynote::Assertion;
use rustix::time::{ClockId, clock_gettime};

/// An assertion with the required fields and these parts.
fn assertion(local: &str, licensees: &str, conditions: &str) -> String {
    format!(
        "KeyNote-Version: 2\nLocal-Constants: {local}\nAuthorizer: \"a\"\n\
         Licensees: {licensees}\nConditions: {conditions}\n"
    )
}

/// A name, and a function that makes a text of about this number of bytes out of one hostile
/// construct.
type Shape = (&'static str, fn(usize) -> String);

fn times(part: &str, bytes: usize) -> String {
    part.repeat(bytes / part.len())
}

const SHAPES: [Shape; 14] = [
    ("clauses", |bytes| assertion("", "\"b\"", &times("a==b->\"r\";", bytes))),
    ("ors", |bytes| assertion("", "\"b\"", &format!("a==b{}", times(" || c==d", bytes)))),
    ("sums", |bytes| assertion("", "\"b\"", &format!("1{} == 2;", times("+1", bytes)))),
    ("concatenations", |bytes| assertion("", "\"b\"", &format!("a{} == b;", times(".a", bytes)))),
    ("powers", |bytes| assertion("", "\"b\"", &format!("1{} == 2;", times("^1", bytes)))),
    ("parentheses", |bytes| {
        let nested = format!("{}a==b{}", "(".repeat(60), ")".repeat(60));
        assertion("", "\"b\"", &times(&format!("{nested};"), bytes))
    }),
    ("open parentheses", |bytes| assertion("", "\"b\"", &times("(", bytes))),
    ("a string", |bytes| assertion("", "\"b\"", &format!("a == \"{}\";", times("x", bytes)))),
    ("escapes", |bytes| assertion("", "\"b\"", &format!("a == \"{}\";", times("\\0\\\"", bytes)))),
    ("a number", |bytes| assertion("", "\"b\"", &format!("@a == {};", times("9", bytes)))),
    ("patterns", |bytes| assertion("", "\"b\"", &times("a ~= \"(x*)*y[a-z]\";", bytes))),
    ("licensees", |bytes| assertion("", &format!("\"b\"{}", times("||\"b\"", bytes)), "a==b;")),
    ("constants", |bytes| {
        let one = |at| format!("c{at}=\"{}\" ", "x".repeat(bytes / 300));
        assertion(&(0..250).map(one).collect::<String>(), "c0", &times("c249==c248;", bytes))
    }),
    ("lines", |bytes| assertion("", "\"b\"", &format!("a==b{};", times("\n # x\n#\n ", bytes)))),
];

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The shortest processor time of some tries, because other work on the machine only makes it
/// longer.
fn shortest(work: impl Fn()) -> Duration {
    let time = |()| {
        let began = processor_time();
        work();
        processor_time() - began
    };
    [(); 3].map(time).into_iter().min().unwrap()
}

#[test]
fn reading_and_printing_take_time_in_proportion_to_the_bytes() {
    for (name, make) in SHAPES {
        let time = |bytes| {
            let text = make(bytes);
            shortest(|| {
                if let Ok(assertion) = Assertion::parse(&text) {
                    let _ = Assertion::parse(assertion.body().to_string());
                }
            })
        };
        // Both have fewer tokens than the limit, so the same limits apply to both.
        let (short, long) = (time(3 << 10), time(24 << 10));
        let floor = Duration::from_micros(200);
        assert!(long < short.max(floor) * 24, "{name}: {short:?} and {long:?} for 8 times as much");
    }
}

#[test]
fn no_text_of_the_longest_size_takes_long_to_read() {
    for (name, make) in SHAPES {
        let text = make(63 << 10);
        let took = shortest(|| drop(Assertion::parse(&text)));
        assert!(took < Duration::from_millis(400), "{name}: {took:?}");
    }
}
