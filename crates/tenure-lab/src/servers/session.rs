//! [`Session`]: one plain connection to a Redis server. For what the lab says itself, and for naive
//! locks, which are nothing but a few commands.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection. After an error it is not to be used again.
#[derive(Debug)]
pub struct Session(BufReader<TcpStream>);

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: no such key, or a condition that was not met.
    Nil,
    /// A number.
    Number(i64),
    /// Text, `OK` included.
    Text(String),
    /// Several.
    List(Vec<Answer>),
    /// The server refuses: `ERR …`.
    Refused(String),
}

impl Session {
    /// Connects to a server on this machine; no answer is waited for longer than `patience`.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn open(port: u16, patience: Duration) -> io::Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends one command and waits for the answer.
    ///
    /// # Errors
    /// The connection broke, or the answer did not come in time: then nobody knows what happened.
    pub fn call<W: AsRef<str>>(&mut self, words: &[W]) -> io::Result<Answer> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            let word = word.as_ref();
            let _ = write!(text, "${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(text.as_bytes())?;
        self.answer()
    }

    /// Waits for something that the server says: the answer to a command, or a message to a subscriber.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn answer(&mut self) -> io::Result<Answer> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.trim_end();
        let (Some(kind), Some(rest)) = (line.get(..1), line.get(1..)) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let number = rest.parse::<i64>();
        Ok(match (kind, number) {
            ("$" | "*", Ok(..0)) | ("_", _) => Answer::Nil,
            ("$", Ok(length)) => Answer::Text(self.text(usize::try_from(length).unwrap_or(0))?),
            ("*", Ok(count)) => Answer::List(
                (0..count)
                    .map(|_| self.answer())
                    .collect::<Result<_, _>>()?,
            ),
            (":", Ok(number)) => Answer::Number(number),
            ("-", _) => Answer::Refused(rest.to_owned()),
            _ => Answer::Text(rest.to_owned()),
        })
    }

    fn text(&mut self, length: usize) -> io::Result<String> {
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Answer {
    /// Whether it is `OK` or a number above zero: a naive lock's idea of success.
    #[must_use]
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Text(text) => text == "OK",
            Self::Number(number) => *number > 0,
            _ => false,
        }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Everything in it as text, one element per line; nothing for nil.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Nil => String::new(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) | Self::Refused(text) => text.clone(),
            Self::List(list) => list.iter().map(Self::text).collect::<Vec<_>>().join("\n"),
        }
    }
}
