//! Two hundred `tenure run` on one name, each with a job that breaks if two of it ever overlap.

use std::fs;

use super::world::{Running, World, text_of};
use crate::support::redis_server::RedisServer;
use crate::support::wait::eventually;

const CROWD: usize = 200;

/// Reads a number, thinks, writes it back plus one; notes its fence; shouts if it is not alone.
const JOB: &str = r#"
mkdir alone || echo overlap >> shouts
n=$(cat number)
echo $TENURE_FENCE >> fences
sleep 0.005
echo $((n + 1)) > number
rmdir alone
"#;

#[test]
fn nobody_overlaps_and_no_update_is_lost_on_sqlite() {
    let crowd = Crowd::gather(&[]);
    crowd.passes_through(|_| {});
}

#[test]
fn nobody_overlaps_and_nobody_gives_up_when_redis_is_killed_and_restarted() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let url = format!("{}&replicas=none", server.url());
    let crowd = Crowd::gather(&["--store", &url]);
    let mut restarts = [CROWD / 4, CROWD / 2].into_iter().peekable();
    crowd.passes_through(|done| {
        if restarts.next_if(|at| done >= *at).is_some() {
            server.kill();
            server.restart();
        }
    });
    assert_eq!(restarts.next(), None, "the server was killed in the middle");
}

struct Crowd {
    world: World,
    members: Vec<Running>,
}

impl Crowd {
    fn gather(options: &[&str]) -> Self {
        let world = World::new();
        world.write("work/number", "0\n");
        let mut arguments = vec!["run", "crowded"];
        arguments.extend(options);
        arguments.extend(["-q", "-c", JOB]);
        let members = (0..CROWD).map(|_| world.start(&arguments)).collect();
        Self { world, members }
    }

    /// Sees all of them through; `each` is told how far they are, again and again.
    fn passes_through(self, mut each: impl FnMut(usize)) {
        let mut done = 0;
        while done < CROWD {
            done = eventually("one more is through", || {
                let now = self.count();
                (now > done).then_some(now)
            });
            each(done);
        }
        for member in self.members {
            member.finish().exits(0);
        }
        let work = self.world.path("work");
        assert_eq!(text_of(&work.join("shouts")), "");
        assert_eq!(
            fs::read_to_string(work.join("number")).expect("a number"),
            format!("{CROWD}\n")
        );
        let fences = fs::read_to_string(work.join("fences")).expect("fences");
        let fences: Vec<u64> = fences
            .lines()
            .map(|line| line.parse().expect("a fence"))
            .collect();
        assert_eq!(fences.len(), CROWD);
        assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    }

    fn count(&self) -> usize {
        let fences = text_of(&self.world.path("work/fences"));
        fences.lines().count()
    }
}
