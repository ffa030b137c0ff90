//! Who really holds the lock: asked of the servers themselves, a hundred times a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::log::Log;
use crate::servers::Session;
use crate::servers::wait::pass;
use crate::timeline::What;

/// Everything that is stored under the lock, whichever algorithm wrote it.
const LOOK: &str = "local all = {} for _, key in ipairs({'lock:stock', 'tenure:stock'}) do \
    local kind = redis.call('TYPE', key).ok \
    if kind == 'string' then all[#all + 1] = redis.call('GET', key) end \
    if kind == 'hash' then for _, word in ipairs(redis.call('HGETALL', key)) do all[#all + 1] = word end end \
    end return all";

/// Looks until it is dropped.
#[derive(Debug)]
pub(super) struct Truth {
    watched: Arc<Mutex<Vec<u16>>>,
    ended: Arc<AtomicBool>,
    now: Arc<Mutex<Vec<String>>>,
}

impl Truth {
    /// Writes down in `log` whenever the holders change; `names` are all who may hold.
    pub(super) fn start(log: Log, names: Arc<Mutex<Vec<String>>>) -> Self {
        let truth = Self {
            watched: Arc::default(),
            ended: Arc::default(),
            now: Arc::default(),
        };
        let (watched, ended, current) = (
            truth.watched.clone(),
            truth.ended.clone(),
            truth.now.clone(),
        );
        std::thread::spawn(move || {
            let mut sessions = Vec::new();
            while !ended.load(Ordering::SeqCst) {
                let ports = locked(&watched).clone();
                let known = locked(&names).clone();
                let holders = look(&ports, &mut sessions, &known);
                let mut current = locked(&current);
                if *current != holders {
                    current.clone_from(&holders);
                    log.note("store", What::Holder { names: holders });
                }
                drop(current);
                pass(Duration::from_millis(10));
            }
        });
        truth
    }

    /// From now on the truth is what a majority of these servers say.
    pub(super) fn watch(&self, ports: Vec<u16>) {
        *locked(&self.watched) = ports;
    }

    /// Who holds it, when last looked.
    pub(super) fn holders(&self) -> Vec<String> {
        locked(&self.now).clone()
    }
}

impl Drop for Truth {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

fn look(ports: &[u16], sessions: &mut Vec<(u16, Session)>, names: &[String]) -> Vec<String> {
    let patience = Duration::from_millis(50);
    sessions.retain(|(port, _)| ports.contains(port));
    let mut texts = Vec::new();
    for port in ports {
        let known = sessions.iter().position(|(of, _)| of == port);
        let session = known.map(|index| sessions.remove(index).1);
        let session = session.map_or_else(|| Session::open(*port, patience), Ok);
        let Ok(mut session) = session else { continue };
        if let Ok(answer) = session.call(&["EVAL", LOOK, "0"]) {
            texts.push(answer.text());
            sessions.push((*port, session));
        }
    }
    let majority = ports.len() / 2 + 1;
    let holds =
        |name: &&String| texts.iter().filter(|text| text.contains(*name)).count() >= majority;
    names.iter().filter(holds).cloned().collect()
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
