//! The protected resource: it carries out a write only if it has seen no higher fence, and writes down
//! what it did. It runs in the process that breaks things, which nobody stops or kills.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tenure::Fence;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use crate::history::{Recorder, What, Write};
use crate::servers::Network;

/// Serves at this socket for as long as the network lives.
pub(crate) fn serve(network: &Network, path: &Path, recorder: Recorder) -> io::Result<()> {
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let resource = Arc::new(Resource {
        recorder,
        written: Mutex::default(),
    });
    network.run(async move {
        let Ok(listener) = UnixListener::from_std(listener) else {
            return;
        };
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, resource.clone()));
        }
    });
    Ok(())
}

struct Resource {
    recorder: Recorder,
    /// Per name: how many writes, and the highest fence.
    written: Mutex<HashMap<String, (u64, Fence)>>,
}

async fn answer(stream: UnixStream, resource: Arc<Resource>) {
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut words = line.splitn(3, ' ');
        let fence = words.next().and_then(|word| word.parse().ok());
        let writer = words.next().and_then(|word| word.parse().ok());
        let (Some(fence), Some(writer), Some(name)) = (fence, writer, words.next()) else {
            return;
        };
        let accepted = resource.write(name, fence, writer);
        let answer: &[u8] = if accepted {
            b"accepted\n"
        } else {
            b"refused\n"
        };
        if to.write_all(answer).await.is_err() {
            return;
        }
    }
}

impl Resource {
    fn write(&self, name: &str, fence: Fence, writer: u32) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, highest) = written.entry(name.to_owned()).or_default();
        let write = Write {
            name: name.to_owned(),
            fence,
            writer,
            before: *count,
        };
        let accepts = fence >= *highest;
        let what = if accepts {
            (*count, *highest) = (*count + 1, fence);
            What::WriteAccepted(write)
        } else {
            What::WriteRefused(write)
        };
        // Under the lock: the order in the history is that of the writes.
        self.recorder.note(0, what);
        accepts
    }
}

/// One way to the resource.
pub(crate) struct Writer {
    process: u32,
    lines: Lines<BufReader<OwnedReadHalf>>,
    to: OwnedWriteHalf,
}

impl Writer {
    pub(crate) async fn open(path: &Path, process: u32) -> io::Result<Self> {
        let (from, to) = UnixStream::connect(path).await?.into_split();
        let lines = BufReader::new(from).lines();
        Ok(Self { process, lines, to })
    }

    /// Writes, and waits until that was carried out or refused.
    pub(crate) async fn write(&mut self, name: &str, fence: Fence) -> io::Result<()> {
        let line = format!("{fence} {} {name}\n", self.process);
        self.to.write_all(line.as_bytes()).await?;
        self.lines.next_line().await.map(drop)
    }
}
