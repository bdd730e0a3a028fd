//! Answers do not allocate once the agent's working memory has grown: with
//! an allocator that counts, for each kind of request, v2c and v3.

#![allow(clippy::expect_used, reason = "a test fails by it")]
#![allow(dead_code, reason = "the fixture has more than one user")]

use cap::Cap;
use fingerpost_snmp::agent::{ANSWER_BUFFER_BYTES, Agent, Outcome};
use fingerpost_snmp::mib::DefaultContext;

#[path = "../../../fuzz/src/snmp.rs"]
mod fixture;

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

#[test]
fn an_answer_allocates_nothing() {
    let requests = lab::corpus::files("snmp_agent", 20).expect("the corpus");
    let mut agent = Agent::new(fixture::config()).expect("a sound configuration");
    let objects = fixture::objects();
    let contexts = DefaultContext(&objects);
    let mut out = vec![0; ANSWER_BUFFER_BYTES];
    let mut all = || {
        let mut answered = 0;
        for request in &requests {
            let now = fixture::NOW_MILLIS;
            let outcome = agent.answer(request, fixture::ALLOWED, now, &contexts, &mut out);
            answered += usize::from(matches!(outcome, Outcome::Answered(_)));
        }
        answered
    };
    assert!(all() >= 20);
    let before = ALLOCATOR.total_allocated();
    all();
    assert_eq!(ALLOCATOR.total_allocated() - before, 0);
}
