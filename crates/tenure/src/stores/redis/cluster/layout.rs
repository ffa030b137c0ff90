//! [`Layout`]: which nodes there are and who of them has which slots, as one of them says.

use redis::Value;

use super::super::connection::Link;
use super::super::errors::{self, Failure};
use super::super::options::Address;
use super::slots::SLOTS;

/// What one node says about all.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The higher, the newer.
    pub(super) epoch: u64,
    /// First and last slot, and the primary that has them.
    pub(super) ranges: Vec<(u16, u16, Address)>,
}

/// Asks the node at the other end of `link`.
pub(super) async fn ask(link: &Link) -> Result<Layout, Failure> {
    let deadline = link.deadline();
    let live = link.live(deadline).await?;
    let mut commands = redis::pipe();
    commands.cmd("CLUSTER").arg("INFO");
    commands.cmd("CLUSTER").arg("SLOTS");
    let values = link.send_all(&live, &commands, deadline).await?;
    let address = &link.options.address;
    let [info, slots] = <[Value; 2]>::try_from(values).map_err(|_| shape())?;
    read(info, slots, address).map_err(|failure| failure.at(address))
}

fn read(info: Value, slots: Value, asked: &Address) -> Result<Layout, Failure> {
    let epoch = match info {
        Value::ServerError(error) => return Err(errors::from_server(&error)),
        info => epoch(info).ok_or_else(shape)?,
    };
    let Value::Array(rows) = slots else {
        return Err(shape());
    };
    let ranges: Option<Vec<_>> = rows.into_iter().map(|row| range(row, asked)).collect();
    let ranges = ranges.ok_or_else(shape)?;
    Ok(Layout { epoch, ranges })
}

fn epoch(info: Value) -> Option<u64> {
    let text: String = redis::from_redis_value(info).ok()?;
    let line = |line: &str| {
        line.strip_prefix("cluster_current_epoch:")?
            .trim()
            .parse()
            .ok()
    };
    text.lines().find_map(line)
}

/// First slot, last slot, primary, replicas. A node is: host, port, id, more.
fn range(row: Value, asked: &Address) -> Option<(u16, u16, Address)> {
    let Value::Array(parts) = row else {
        return None;
    };
    let [
        Value::Int(first),
        Value::Int(last),
        Value::Array(primary),
        ..,
    ] = &parts[..]
    else {
        return None;
    };
    let [host, Value::Int(port), ..] = &primary[..] else {
        return None;
    };
    let host = match host {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    // A node that does not know its own name is where it was asked.
    let host = host.filter(|host| !matches!(*host, "" | "?"));
    let slot = |number: &i64| u16::try_from(*number).ok().filter(|slot| *slot < SLOTS);
    let primary = asked.beside(host, u16::try_from(*port).ok()?);
    Some((slot(first)?, slot(last)?, primary))
}

fn shape() -> Failure {
    Failure::protocol("the server's answer to CLUSTER SLOTS has the wrong shape")
        .sparing_the_connection()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn primaries_are_read_and_a_nameless_one_is_where_it_was_asked() {
        let tcp = |host: &str, port| Address::Tcp {
            host: host.to_owned(),
            port,
        };
        let row = |first, last, host: Value, port| {
            let primary = Value::Array(vec![
                host,
                Value::Int(port),
                text("id"),
                Value::Array(vec![]),
            ]);
            let replica = Value::Array(vec![text("r"), Value::Int(9)]);
            Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
        };
        let slots = Value::Array(vec![
            row(0, 99, text("one"), 7000),
            row(100, 16_383, Value::Nil, 7001),
        ]);
        let info = text("cluster_state:ok\r\ncluster_current_epoch:6\r\n");
        let layout = read(info.clone(), slots, &tcp("seed", 1)).expect("well formed");
        let ranges = vec![(0, 99, tcp("one", 7000)), (100, 16_383, tcp("seed", 7001))];
        assert_eq!(layout, Layout { epoch: 6, ranges });
        assert!(read(info, text("?"), &tcp("seed", 1)).is_err());
    }
}
