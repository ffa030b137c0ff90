//! teeth
use super::flaws::Flaw;
use super::profile::Profile;
use super::run::run;

#[test]
fn explore() {
    use Flaw::*;
    for flaw in [UnlockWithoutOwner, ValidityFromTheReply, ClockBeforeTheLock, CounterFence, NoClaimWindow, WaiterWithoutALimit, CancelForgetsAGrant, PushOnly, RecoveryOff] {
        for profile in [Profile::STORM, Profile::ORDERLY, Profile::DYING_WAITERS, Profile::FORGETFUL, Profile::ROW_LOCKS] {
            let mut found = Vec::new();
            for seed in 0..60 {
                let verdict = run(seed, profile, Some(flaw), false);
                if let Some(v) = verdict.found { found.push((seed, v.wrong)); }
                if found.len() > 2 { break; }
            }
            println!("{flaw:?} {}: {found:?}", profile.name);
        }
    }
}
