//! What a `redis+cluster:` URL says: as for one server, with the addresses of several nodes.

use tenure_core::{Error, ErrorKind};

use super::super::options::{Address, Options};

/// Reads a URL. The options are those of every node; the addresses are of some.
///
/// # Errors
/// [`ErrorKind::Configuration`] that says what is wrong and what is meant instead.
pub(super) fn parse(text: &str) -> Result<(Options, Vec<Address>), Error> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| {
        wrong("a cluster is written redis+cluster://host1,host2,host3 (any of its nodes)")
    })?;
    let scheme = match scheme {
        "redis+cluster" => "redis",
        "rediss+cluster" => "rediss",
        _ => {
            return Err(wrong(
                "a cluster is written redis+cluster://host1,host2,host3",
            ));
        }
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let start = rest[..end].rfind('@').map_or(0, |at| at + 1);
    let (credentials, hosts, tail) = (&rest[..start], &rest[start..end], &rest[end..]);
    let mut nodes: Vec<Address> = Vec::new();
    for host in hosts.split(',') {
        let node = Options::parse(&format!("{scheme}://{host}"));
        let node = node.map_err(|_| {
            wrong(format!(
                "`{host}` is not the address of a node: write them as host1,host2:7000,host3"
            ))
        })?;
        if host.is_empty() && hosts.contains(',') {
            return Err(wrong("there is a comma too many between the hosts"));
        }
        if nodes.contains(&node.address) {
            return Err(wrong(format!("the node {} is named twice", node.address)));
        }
        nodes.push(node.address);
    }
    let first = hosts.split(',').next().unwrap_or_default();
    let options = Options::parse(&format!("{scheme}://{credentials}{first}{tail}"))?;
    if !options.is_first_database() {
        return Err(wrong(
            "a cluster has only one database: leave its number out",
        ));
    }
    Ok((options.for_a_member().for_replicas()?, nodes))
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

#[cfg(test)]
mod tests {
    use tenure_core::Recovery;

    use super::*;

    #[test]
    fn some_nodes_are_enough_and_options_are_those_of_a_server() {
        let url = "redis+cluster://u:p%2Cw@one,two:7000,[::1]:7001?prefix=p:&call_timeout=1s";
        let (options, nodes) = parse(url).expect("well formed");
        let shown: Vec<_> = nodes.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["one:6379", "two:7000", "[::1]:7001"]);
        assert_eq!(options.prefix, "p:");
        assert_eq!(options.caution.recovery, Recovery::Strict);
        let (options, _) = parse("redis+cluster://h?recovery=careful&max_ttl=5s").expect("fine");
        assert_eq!(options.caution.recovery, Recovery::Careful);
        let (_, nodes) = parse("rediss+cluster://h/0").expect("well formed");
        assert!(nodes[0].is_tls());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_advice() {
        let refusal = |url: &str| parse(url).expect_err(url).to_string();
        assert!(refusal("redis+cluster://one,").contains("comma"));
        assert!(refusal("redis+cluster://one,one:6379").contains("twice"));
        assert!(refusal("redis+cluster://one/1").contains("only one database"));
        assert!(refusal("redis+cluster://one,t wo").contains("not the address"));
        assert!(refusal("redis+cluster://one?replicas=none").contains("a replica does"));
        assert!(refusal("redis+cluster:one").contains("redis+cluster://host1"));
        assert!(!refusal("redis+cluster://u:hunter2@one,two?x=1").contains("hunter2"));
    }
}
