//! A worker: a process of its own that takes a lock, writes to the resource and gives the lock back,
//! when it is told to, and prints what it believes. Either with a naive algorithm or with ours.

pub(crate) mod naive;
mod ours;

use std::io::{BufRead as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::servers::wait::now;
use crate::timeline::{Event, What};

/// What a worker is told when it is started.
#[derive(Clone, Debug, Args)]
pub struct WorkerArgs {
    /// Who starts it.
    #[arg(long)]
    parent: u32,
    /// What it is called.
    #[arg(long)]
    name: String,
    /// In which anomaly it plays.
    #[arg(long)]
    anomaly: String,
    /// With which lock.
    #[arg(long)]
    how: How,
    /// Where ours is kept.
    #[arg(long)]
    url: String,
    /// The servers of the naive one.
    #[arg(long, value_delimiter = ',')]
    ports: Vec<u16>,
    /// Where the protected resource is.
    #[arg(long)]
    resource: u16,
}

/// With which lock a play is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum How {
    /// The algorithm that goes wrong.
    Naive,
    /// tenure.
    Ours,
}

/// What a worker is told while it runs, one line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    Acquire(Ask),
    /// Take the same lock again, as the one who has it.
    Reenter,
    /// Turn from a writer into a reader.
    Downgrade,
    /// Leave the point at which it stands.
    Go,
    /// Write to the resource; stop between the last check and the write, if asked to.
    Write {
        stop: bool,
    },
    Release,
    /// Make an owner id at this moment.
    Draw {
        at: u64,
    },
}

/// In which way a lock is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) shared: bool,
    pub(crate) ttl: Duration,
    /// Try again for so long.
    pub(crate) wait: Duration,
    /// Wait for a message and do not ask again before; ours asks again now and then whatever happens.
    pub(crate) told_by_push: bool,
    /// Stand still at this point of the algorithm, if there is such a point.
    pub(crate) stop_at: Option<String>,
}

/// The lock that everything is about.
pub(crate) const LOCK: &str = "stock";
/// Between the last look at the lock and the write.
pub(crate) const BEFORE_WRITE: &str = "just before the write";

/// Runs a worker until its orders end.
pub(crate) fn execute(args: &WorkerArgs) -> u8 {
    crate::program::die_with_parent(args.parent);
    match args.how {
        How::Naive => naive::execute(args),
        How::Ours => ours::execute(args),
    }
    0
}

/// Prints what happens to this worker, one line each with one `write`.
#[derive(Clone, Debug)]
struct Voice {
    who: String,
}

impl Voice {
    fn of(args: &WorkerArgs) -> Self {
        let who = args.name.clone();
        Self { who }
    }

    fn say(&self, what: What) {
        let who = self.who.clone();
        let at = now().as_nanos();
        if let Ok(mut line) = serde_json::to_vec(&Event { at, who, what }) {
            line.push(b'\n');
            // If nobody reads, the play is over.
            let _ = std::io::stdout().lock().write_all(&line);
        }
    }

    fn done(&self, word: &str) {
        let word = word.to_owned();
        self.say(What::Done { word });
    }
}

/// Orders as they come in, until nobody gives any.
fn orders(mut give: impl FnMut(Order) + Send + 'static) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Ok(order) = serde_json::from_str(&line) {
                give(order);
            }
        }
        std::process::exit(0);
    });
}

fn orders_channel() -> mpsc::Receiver<Order> {
    let (give, take) = mpsc::channel();
    orders(move |order| {
        let _ = give.send(order);
    });
    take
}

/// Sends one write to the protected resource and waits until it is accepted or refused, which the
/// resource itself reports.
fn write_to_resource(args: &WorkerArgs, fence: Option<u64>) {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", args.resource)) else {
        return;
    };
    let fence = fence.map_or_else(|| "-".to_owned(), |fence| fence.to_string());
    let _ = stream.write_all(format!("{} {fence}\n", args.name).as_bytes());
    let mut answer = String::new();
    let _ = std::io::BufReader::new(stream).read_line(&mut answer);
}
