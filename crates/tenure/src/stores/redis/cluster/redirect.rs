//! [`Redirect`]: what a node of a cluster says when it does not carry out a call.

use super::super::options::Address;

/// Where to go instead, or what to wait for. Nothing was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Redirect {
    /// Another node has the slot for good.
    Moved {
        slot: u16,
        /// `None`: the host that said so.
        host: Option<String>,
        port: u16,
    },
    /// The slot is on its way from one node to another. Neither can serve a lock meanwhile, since its keys
    /// may be on both and some of them on none; see `docs/decisions/`.
    Moving,
    /// Nobody has the slot, or too many nodes of the cluster are down.
    Down,
    /// The node has just started.
    Loading,
}

impl Redirect {
    /// Reads an error text: its code, then words.
    pub(in super::super) fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        match words.next()? {
            "MOVED" => {
                let slot = words.next()?.parse().ok()?;
                let (host, port) = words.next()?.rsplit_once(':')?;
                let port = port.parse().ok()?;
                let host = host.trim_matches(['[', ']']);
                let host = (!matches!(host, "" | "?")).then(|| host.to_owned());
                Some(Self::Moved { slot, host, port })
            }
            "ASK" | "TRYAGAIN" => Some(Self::Moving),
            "CLUSTERDOWN" => Some(Self::Down),
            "LOADING" => Some(Self::Loading),
            _ => None,
        }
    }

    /// Who has the slot now, if the node at `asked` said so.
    pub(super) fn owner(&self, asked: &Address) -> Option<(u16, Address)> {
        match self {
            Self::Moved { slot, host, port } => Some((*slot, asked.beside(host.as_deref(), *port))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_a_cluster_is_understood() {
        let moved = |host: Option<&str>, port| Redirect::Moved {
            slot: 866,
            host: host.map(str::to_owned),
            port,
        };
        for (text, expected) in [
            (
                "MOVED 866 127.0.0.1:7001",
                Some(moved(Some("127.0.0.1"), 7001)),
            ),
            ("MOVED 866 :7001", Some(moved(None, 7001))),
            ("MOVED 866 ?:7001", Some(moved(None, 7001))),
            (
                "MOVED 866 2001:db8::1:7001",
                Some(moved(Some("2001:db8::1"), 7001)),
            ),
            ("ASK 866 127.0.0.1:7001", Some(Redirect::Moving)),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Some(Redirect::Moving),
            ),
            ("CLUSTERDOWN Hash slot not served", Some(Redirect::Down)),
            (
                "LOADING Redis is loading the dataset in memory",
                Some(Redirect::Loading),
            ),
            ("OOM command not allowed", None),
        ] {
            assert_eq!(Redirect::read(text), expected, "{text}");
        }
    }
}
