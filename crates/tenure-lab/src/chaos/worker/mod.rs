//! One worker process: several tasks that take locks in all ways, write to what the locks protect, and
//! write down what happens to them.

mod store;
mod tap;
mod task;
mod turn;

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::{Clock, Tenure};
use tokio::sync::watch;

use crate::args::ChaosWorkerArgs;
use crate::history::Recorder;
use crate::program::die_with_parent;
use crate::servers::wait::is_interrupted;
use tap::Tap;
use task::{Task, Work};

/// What the workers are told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Take locks as they like.
    Work,
    /// Come to an end.
    Drain,
}

/// The worker process; returns its exit code.
pub(crate) fn worker(args: &ChaosWorkerArgs) -> u8 {
    die_with_parent(args.parent);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime.map(|runtime| runtime.block_on(work(args)));
    match done {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => complain(&error),
        Err(error) => complain(&error),
    }
}

fn complain(error: &dyn std::fmt::Display) -> u8 {
    anstream::eprintln!("worker: {error}");
    1
}

async fn work(args: &ChaosWorkerArgs) -> std::io::Result<()> {
    let recorder = Recorder::open(&args.history, args.process)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start().map_err(std::io::Error::other)?);
    let tenure = connect(&args.url, &clock, &recorder).await;
    writeln!(std::io::stdout(), "ready")?;
    let (orders, order) = watch::channel(Order::Work);
    std::thread::spawn(move || {
        // Whatever comes, also the end: it is time.
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        let _ = orders.send(Order::Drain);
        // The channel stays open.
        std::mem::forget(orders);
    });
    let mut tasks = Vec::new();
    for number in 1..=args.tasks {
        let work = Work {
            tenure: tenure.clone(),
            clock: clock.clone(),
            recorder: recorder.clone(),
            order: order.clone(),
            process: args.process,
            resource: args.resource.clone(),
            permits: args.permits,
            patience: Duration::from_millis(args.patience_ms),
        };
        let seed = args.seed.wrapping_add(u64::from(number) << 16);
        tasks.push(tokio::spawn(Task::new(work, number, seed).run()));
    }
    for task in tasks {
        task.await.map_err(std::io::Error::other)??;
    }
    let limit = Duration::from_secs(10);
    tokio::select! {
        () = tenure.settle() => {}
        () = clock.sleep(limit) => {}
    }
    Ok(())
}

/// Tries until it works: the store may be broken just now.
async fn connect(url: &str, clock: &Arc<dyn Clock>, recorder: &Recorder) -> Tenure {
    loop {
        if let Ok(store) = store::open(url, clock).await {
            let tap = Tap::new(store, recorder.clone());
            if let Ok(tenure) = Tenure::new(Arc::new(tap), clock.clone()).await {
                return tenure;
            }
        }
        clock.sleep(Duration::from_millis(100)).await;
    }
}

/// Whether there is such a store, and why not.
pub(crate) fn reach(url: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let listed = runtime.block_on(listed(url, Duration::ZERO));
    listed.map(drop).map_err(|error| error.to_string())
}

/// What is still held or waited for at this store, once nothing is any more or `limit` has passed.
pub(crate) fn left(url: &str, limit: Duration) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let listed = runtime.map(|runtime| runtime.block_on(listed(url, limit)));
    match listed {
        Ok(Ok(names)) => names,
        Ok(Err(error)) => vec![format!("(cannot be asked: {error})")],
        Err(error) => vec![format!("(cannot be asked: {error})")],
    }
}

async fn listed(url: &str, limit: Duration) -> Result<Vec<String>, tenure::Error> {
    let tenure = tenure::connect(url).await?;
    let clock = tenure.clock().clone();
    let until = clock.now().plus(limit);
    loop {
        let listing = tenure.list(turn::PREFIX).await?;
        let names: Vec<_> = listing
            .locks
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        if names.is_empty() || clock.now() >= until || is_interrupted() {
            return Ok(names);
        }
        clock.sleep(Duration::from_millis(200)).await;
    }
}
