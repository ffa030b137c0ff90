//! Replies as scripts give them, and as they should not.

use super::*;
use tenure_core::ErrorKind;

const OWNER: &str = "000102030405060708090a0b0c0d0e0f";

fn read(text: &str) -> Result<Answer, Failure> {
    let asked = Asked {
        owner: Some(OWNER.parse().unwrap()),
        fence: Some(Fence::from_u64(7)),
    };
    answer(text, Nonce::from_word("a1").unwrap(), &asked)
}

#[test]
fn a_reply_to_another_request_is_never_taken_for_ours() {
    let other = OWNER.replace('0', "f");
    for text in [
        format!("a2 {OWNER} 5 - granted 7 9"),
        format!("a1 {other} 5 - granted 7 9"),
        "OK".to_owned(),
        String::new(),
    ] {
        let failure = read(&text).expect_err(&text);
        assert_eq!(failure.kind, ErrorKind::Protocol, "{text}");
        assert!(failure.fatal, "the connection is given up: {text}");
    }
    assert!(read(&format!("a1 {OWNER} 5 - granted 7 9")).is_ok());
}

#[test]
fn a_reply_that_is_ours_but_unreadable_keeps_the_connection() {
    for said in [
        "sung 7",
        "granted 7",
        "busy 1 0 - - 1 - q - - - - 0 - list -",
    ] {
        let failure = read(&format!("a1 {OWNER} 5 - {said}")).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Protocol, "{said}");
        assert!(!failure.fatal, "{said}");
    }
}

#[test]
fn an_error_of_one_request_keeps_the_connection() {
    let failure = read(&format!("a1 {OWNER} 5 - error OOM no memory")).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Refused);
    assert!(!failure.fatal);
}

#[test]
fn a_foreign_holder_is_shown_with_its_type() {
    let text = format!("a1 {OWNER} 5 (3 busy 1 2 - - 1 - x - - - - 0 - list -");
    let answer = read(&text).unwrap();
    assert_eq!(answer.more.as_deref(), Some("(3"));
    let Some(Outcome::Busy(contention)) = answer.reply.map(|reply| reply.outcome) else {
        panic!("{text}");
    };
    assert!(contention.is_foreign());
    assert_eq!((contention.holder_count, contention.waiter_count), (1, 2));
    assert_eq!(contention.holders[0].party.who(), "a key of type list");
    assert_eq!(contention.next_expiry, None);
}
