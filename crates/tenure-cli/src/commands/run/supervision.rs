//! The command while it runs under the lock: how it is run, and what is told meanwhile.

use serde_json::json;
use tenure::Guard;

use super::Run;
use super::lease_status::{self, Change};
use super::notices;
use crate::args::{OnLost, Orphans};
use crate::job::{self, JobEnd, JobPlan, Notice, Signals};
use crate::output::human;
use crate::output::view::milliseconds;
use crate::settings::environment::Granted;

impl Run<'_> {
    /// Runs the command until it and all that it started are gone.
    pub(super) async fn supervise(&self, guard: &Guard, signals: &mut Signals) -> JobEnd {
        let name = self.settings.lock.name.as_str();
        let reporter = |notice: &Notice| {
            // The end of the run says it anyway.
            if *notice != Notice::HoldAtMost {
                self.output.warn(&format!("lock {name:?}: {notice}"));
            }
            let (event, fields) = notices::event(notice);
            self.events.write(event, fields);
        };
        let (status, following) = lease_status::follow(guard, |change| self.tell(change));
        let job = job::run(self.plan(guard), signals, status, &reporter);
        tokio::pin!(following);
        tokio::pin!(job);
        loop {
            tokio::select! {
                biased;
                end = &mut job => return end,
                () = &mut following => {}
            }
        }
    }

    fn tell(&self, change: Change) {
        let name = self.settings.lock.name.as_str();
        match change {
            Change::InDoubt { left } => {
                let left_text = human::duration(left);
                self.output.warn(&format!(
                    "lock {name:?}: the lease cannot be renewed, trying on; it ends in {left_text}"
                ));
                let fields = json!({ "expires_in_ms": milliseconds(left) });
                self.events.write("renewal_failing", fields);
            }
            Change::Renewed => {
                self.output
                    .note(&format!("lock {name:?}: the lease is renewed again"));
                self.events.write("renewed", json!({}));
            }
        }
    }

    fn plan(&self, guard: &Guard) -> JobPlan {
        let settings = self.settings;
        let mut plan = JobPlan::new(&settings.program.path, &settings.program.name);
        plan.args = settings.program.arguments.clone();
        plan.env = Granted {
            name: &settings.lock.name,
            lease: guard.lease(),
            who: settings.lock.party.who(),
            ttl_ms: settings.ttl.as_millis(),
            store: &self.session.choice().url,
        }
        .variables(&self.inherited, settings.pass_store);
        plan.keep_open = self.session.anchors();
        plan.grace = settings.grace;
        plan.hold_at_most = settings.hold_at_most;
        plan.foreground = settings.foreground;
        plan.on_lost = match settings.on_lost {
            OnLost::Kill => job::OnLost::Kill,
            OnLost::Signal(signal) => job::OnLost::Signal(signal),
            OnLost::Warn => job::OnLost::Warn,
        };
        plan.orphans = match settings.orphans {
            Orphans::Kill => job::Orphans::Kill,
            Orphans::Wait => job::Orphans::Wait,
            Orphans::Release => job::Orphans::Release,
        };
        plan
    }
}
