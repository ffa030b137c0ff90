//! Courses of steps written by hand: some that `decide` explains and some that it does not.

use tenure::core::Order;
use tenure::{Fence, Mode};

use super::super::sketch::owner;
use super::super::{Check, check};
use crate::history::{Asked, Event, Fault, History, Memory, Said, Step, Terms, What};

/// Time goes on by a millisecond from line to line; the store's clock is the same.
struct Course {
    events: Vec<Event>,
    calls: u64,
}

const SECOND: u64 = 1_000_000;

impl Course {
    fn new() -> Self {
        let mut course = Self {
            events: Vec::new(),
            calls: 0,
        };
        course.push(
            0,
            What::Run(Terms {
                store: "sketch".to_owned(),
                seed: 0,
                order: Order::Arrival,
                one_machine: true,
                sees_death: true,
                shortens: false,
                idle_ms: 60_000,
                recovery_ms: 60_000,
            }),
        );
        course
    }

    /// Asked and answered at once, at this time of the store.
    fn step(&mut self, process: u32, ask: (Asked, u64), said: Said) -> &mut Self {
        let call = self.asks(process, ask);
        self.answer(process, call, said)
    }

    fn asks(&mut self, process: u32, (ask, fence): (Asked, u64)) -> u64 {
        self.calls += 1;
        let step = Step {
            owner: Some(owner(process)),
            fence: (fence > 0).then(|| Fence::from_u64(fence)),
            ask,
        };
        let name = "x".to_owned();
        let call = self.calls;
        self.push(process, What::Asked { call, name, step });
        call
    }

    fn answer(&mut self, process: u32, call: u64, said: Said) -> &mut Self {
        let now = self.now();
        self.push(process, What::Answered { call, now, said })
    }

    /// What the store's clock will show at the next line.
    fn now(&self) -> u64 {
        (self.events.len() as u64 + 1_000) * 1_000
    }

    fn push(&mut self, process: u32, what: What) -> &mut Self {
        let at = self.now() * 1_000;
        let task = 0;
        self.events.push(Event {
            at,
            process,
            task,
            what,
        });
        self
    }

    fn kills(&mut self, process: u32) -> &mut Self {
        self.fault(Some(process), Memory::Kept)
    }

    fn fault(&mut self, kills: Option<u32>, memory: Memory) -> &mut Self {
        self.fault_of_kind("fault", kills, memory)
    }

    fn fault_of_kind(&mut self, kind: &str, kills: Option<u32>, memory: Memory) -> &mut Self {
        self.push(
            0,
            What::Fault(Fault {
                kind: kind.to_owned(),
                detail: String::new(),
                breaks: Vec::new(),
                kills,
                memory,
            }),
        )
    }

    fn violations(&self) -> usize {
        let verdict = check(&History::new(self.events.clone()));
        let violations: Vec<_> = verdict
            .violations()
            .filter(|it| it.check == Check::C4)
            .collect();
        assert!(violations.iter().all(|it| !it.evidence.is_empty()));
        violations.len()
    }
}

fn acquire(process: u32, waits: bool) -> (Asked, u64) {
    let ask = Asked::Acquire {
        mode: Mode::Exclusive,
        ttl_ms: 1_000,
        alive_ms: waits.then_some(15_000),
        inbox: Some(format!("p{process}")),
        not_after: None,
    };
    (ask, 0)
}

fn release(fence: u64) -> (Asked, u64) {
    (Asked::Release, fence)
}

fn granted(at: u64) -> Said {
    Said::Granted {
        fence: Fence::from_u64(at),
        expiry: at + SECOND,
    }
}

const BUSY: Said = Said::Busy { recovering: None };
const QUEUED: Said = Said::Queued { recovering: None };

#[test]
fn what_decide_says_is_explained() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    course.step(2, acquire(2, false), BUSY);
    course.step(1, release(first), Said::Released);
    course.step(1, release(first), Said::NotHeld);
    let second = course.now() + 1_000;
    course.step(2, acquire(2, false), granted(second));
    assert_eq!(course.violations(), 0);
}

#[test]
fn two_grants_in_a_row_are_not() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    let second = course.now() + 1_000;
    course.step(2, acquire(2, false), granted(second));
    assert_eq!(course.violations(), 1);
}

#[test]
fn an_answer_may_come_in_another_order_if_both_were_under_way() {
    // Process 2 is told first that it is busy, although process 1 holds by then.
    let mut course = Course::new();
    let one = course.asks(1, acquire(1, false));
    let granted_at = course.now();
    let two = course.asks(2, acquire(2, false));
    course.answer(2, two, BUSY);
    let said = granted(granted_at);
    course.push(
        1,
        What::Answered {
            call: one,
            now: granted_at,
            said,
        },
    );
    assert_eq!(course.violations(), 0);
    // But not if it had been told before the other asked.
    let mut course = Course::new();
    course.step(2, acquire(2, false), BUSY);
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    assert_eq!(course.violations(), 1);
}

#[test]
fn what_was_not_answered_may_have_happened_at_any_later_time_or_never() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    course.asks(1, release(first));
    course.step(2, acquire(2, false), BUSY);
    let second = course.now() + 1_000;
    course.step(3, acquire(3, false), granted(second));
    assert_eq!(course.violations(), 0);
    // It cannot have happened before it was asked.
    let mut course = Course::new();
    course.step(1, acquire(1, false), granted(first));
    let second = course.now() + 1_000;
    course.step(2, acquire(2, false), granted(second));
    course.asks(1, release(first));
    assert_eq!(course.violations(), 1);
}

#[test]
fn a_grant_by_a_step_whose_answer_was_lost_is_found_by_its_fence() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    course.step(2, acquire(2, true), QUEUED);
    course.asks(1, release(first));
    let handed_over = course.now() + 10;
    course.step(3, acquire(3, false), BUSY);
    // A pushed grant lasts for the claim window, half of what its place is kept for.
    let said = Said::Granted {
        fence: Fence::from_u64(handed_over),
        expiry: handed_over + 7_500_000,
    };
    course.step(2, acquire(2, true), said.clone());
    assert_eq!(course.violations(), 0);
    // Without anybody who could have released it there is no explanation.
    course.events.retain(|event| {
        !matches!(&event.what,
        What::Asked { step, .. } if step.ask == Asked::Release)
    });
    assert_eq!(course.violations(), 1);
}

#[test]
fn a_lease_that_has_ended_is_no_obstacle_and_one_that_has_not_is() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    let call = course.asks(2, acquire(2, false));
    let (now, said) = (first + SECOND, granted(first + SECOND));
    course.push(2, What::Answered { call, now, said });
    assert_eq!(course.violations(), 0);
    course.events.pop();
    let (now, said) = (first + SECOND - 1, granted(first + SECOND - 1));
    course.push(2, What::Answered { call, now, said });
    assert_eq!(course.violations(), 1);
}

#[test]
fn a_hold_ends_with_its_process_where_the_store_sees_that() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first)).kills(1);
    let second = course.now() + 1_000;
    course.step(2, acquire(2, false), granted(second));
    assert_eq!(course.violations(), 0);
    let Some(What::Run(terms)) = course.events.first_mut().map(|event| &mut event.what) else {
        panic!("the first line");
    };
    terms.sees_death = false;
    assert_eq!(course.violations(), 1);
}

#[test]
fn steps_whose_answers_were_lost_do_not_hide_what_is_wrong() {
    // In any order, or not at all: a million ways to have done nothing.
    let mut course = Course::new();
    for process in 10..30 {
        course.asks(process, (Asked::Cancel, 0));
    }
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    let second = course.now() + 1_000;
    course.step(2, acquire(2, false), granted(second));
    assert_eq!(course.violations(), 1);
}

#[test]
fn what_was_repeated_may_have_happened_twice() {
    // Somebody is in the way of process 2: the question of process 1, which came once more.
    for (kind, violations) in [(super::REPEAT, 0), ("delay", 1)] {
        let mut course = Course::new();
        course.fault_of_kind(kind, None, Memory::Kept);
        let first = course.now() + 1_000;
        course.step(1, acquire(1, false), granted(first));
        course.step(1, release(first), Said::Released);
        course.step(2, acquire(2, false), BUSY);
        assert_eq!(course.violations(), violations, "{kind}");
    }
}

#[test]
fn whoever_cannot_be_reached_is_passed_over() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    course.step(2, acquire(2, true), QUEUED);
    course.step(3, acquire(3, true), QUEUED);
    let handed_over = course.now() + 1_000;
    course.step(1, release(first), Said::Released);
    let said = Said::Granted {
        fence: Fence::from_u64(handed_over),
        expiry: handed_over + 7_500_000,
    };
    course.step(3, acquire(3, true), said);
    assert_eq!(course.violations(), 0);
}

#[test]
fn after_the_store_may_have_forgotten_nothing_is_judged() {
    let mut course = Course::new();
    let first = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(first));
    course.fault(None, Memory::Unsure);
    let second = course.now() + 1_000;
    course.step(2, acquire(2, false), granted(second));
    assert_eq!(course.violations(), 0);
}

#[test]
fn nobody_is_let_in_before_the_time_that_a_recovering_store_named_last() {
    let busy_until = |until| Said::Busy {
        recovering: Some(until),
    };
    let mut course = Course::new();
    let (soon, late) = (course.now() + 6_000, course.now() + 1_000_000);
    course.step(1, acquire(1, false), busy_until(late));
    course.step(1, acquire(1, false), busy_until(soon));
    course.step(2, acquire(2, false), busy_until(soon));
    let now = course.now() + 1_000;
    assert!(now > soon);
    course.step(1, acquire(1, false), granted(now));
    assert_eq!(course.violations(), 0);

    let mut course = Course::new();
    course.step(1, acquire(1, false), busy_until(soon));
    course.step(1, acquire(1, false), busy_until(late));
    let now = course.now() + 1_000;
    course.step(1, acquire(1, false), granted(now));
    assert_eq!(course.violations(), 1);
}
