//! What URLs mean, and what is said about those that mean nothing.

use super::*;

fn options(url: &str) -> Options {
    Options::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn refusal(url: &str) -> String {
    let error = Options::parse(url).expect_err(url);
    assert_eq!(error.kind(), ErrorKind::Configuration);
    error.to_string()
}

#[test]
fn a_host_alone_is_enough() {
    let options = options("redis://example");
    assert_eq!(options.address.to_string(), "example:6379");
    assert_eq!(options.prefix, "tenure:");
    assert_eq!(options.call_timeout, Duration::from_secs(2));
    assert_eq!((options.protocol, options.database), (None, 0));
}

#[test]
fn every_part_is_read() {
    let options =
        options("rediss://us%20er:p%40ss@h:7000/3?prefix=&protocol=resp2&call_timeout=150ms");
    assert!(options.address.is_tls());
    assert_eq!(options.address.to_string(), "h:7000");
    assert_eq!(options.user.as_deref(), Some("us er"));
    assert_eq!(options.password.as_deref(), Some("p@ss"));
    assert_eq!(options.database, 3);
    assert_eq!(options.prefix, "");
    assert_eq!(options.protocol, Some(ProtocolVersion::RESP2));
    assert_eq!(options.call_timeout, Duration::from_millis(150));
}

#[test]
fn a_unix_socket_takes_database_and_credentials_as_options() {
    for scheme in ["redis+unix", "unix"] {
        let options = options(&format!("{scheme}:///run/re%20dis.sock?db=2&user=u&pass=p"));
        assert_eq!(options.address, Address::Unix("/run/re dis.sock".into()));
        assert_eq!(options.database, 2);
        assert_eq!(options.password.as_deref(), Some("p"));
    }
    assert!(refusal("redis+unix://run/redis.sock").contains("three slashes"));
}

#[test]
fn an_ipv6_address_keeps_its_brackets_on_screen_only() {
    let options = options("redis://[::1]:7000");
    assert_eq!(options.address.to_string(), "[::1]:7000");
    assert!(matches!(options.address, Address::Tcp { host, .. } if host == "::1"));
}

#[test]
fn replicas_are_asked_for_with_a_time_limit_that_leaves_room_for_the_call() {
    let replicas = options("redis://h?replica_timeout=50ms&min_replicas=2").replicas;
    let patience = Duration::from_millis(50);
    assert_eq!(replicas, Some(Replicas { least: 2, patience }));
    assert_eq!(options("redis://h?min_replicas=0").replicas, None);
    assert!(refusal("redis://h?min_replicas=two").contains("min_replicas=1"));
    assert!(refusal("redis://h?replica_timeout=50ms").contains("needs min_replicas"));
    assert!(refusal("redis://h?min_replicas=1&replica_timeout=2s").contains("too long"));
    assert!(refusal("redis://h?min_replicas=1&call_timeout=100ms").contains("too long"));
}

#[test]
fn that_there_are_no_replicas_is_said_of_a_server_that_stands_alone() {
    assert!(!options("redis://h").caution.no_replicas);
    assert!(options("redis://h?replicas=none").caution.no_replicas);
    assert!(
        options("unix:///run/redis.sock?replicas=none&min_replicas=0")
            .caution
            .no_replicas
    );
    assert!(refusal("redis://h?replicas=1").contains("replicas=none"));
    assert!(refusal("redis://h?replicas=none&min_replicas=1").contains("contradict"));
    assert!(refusal("redis+sentinel://h/s?replicas=none").contains("a replica does"));
}

#[test]
fn sentinels_are_named_before_their_service() {
    let options = options(
        "redis+sentinel://u:p%2Cw@one,two:7000,[::1]:7001/my%20service/3?sentinel_user=s\
         &sentinel_pass=t&max_ttl=5s",
    );
    assert_eq!(
        options.address.to_string(),
        "my service (of sentinels one:26379, two:7000, [::1]:7001)"
    );
    assert_eq!(options.password.as_deref(), Some("p,w"));
    assert_eq!(options.database, 3);
    assert_eq!(options.caution.max_ttl.duration(), Duration::from_secs(5));
    assert_eq!(options.caution.recovery, Recovery::Strict);
    let Address::Service(service) = &options.address else {
        panic!("{:?}", options.address);
    };
    assert_eq!(service.user.as_deref(), Some("s"));
    assert_eq!(service.password.as_deref(), Some("t"));
    assert!(!options.address.is_tls());
    assert!(Options::parse("rediss+sentinel://h/s").is_ok_and(|it| it.address.is_tls()));
}

#[test]
fn a_sentinel_url_that_lacks_something_is_refused_with_advice() {
    assert!(refusal("redis+sentinel://one,two").contains("/mymaster"));
    assert!(refusal("redis+sentinel://one,/s").contains("not the address"));
    assert!(refusal("redis+sentinel://one,one:26379/s").contains("twice"));
    assert!(refusal("redis+sentinel://one/s/db").contains("database number"));
    assert!(refusal("redis+sentinel://one/s?max_ttl=9").contains("with its unit"));
    assert!(refusal("redis://h?sentinel_pass=secret").contains("redis+sentinel"));
    assert!(!refusal("redis://h?sentinel_pass=secret").contains("secret"));
}

#[test]
fn what_is_not_understood_is_refused_with_advice() {
    assert!(refusal("redis://h?prefx=a").contains("did you mean `prefix`?"));
    assert!(refusal("redis://h?insecure").contains("there are prefix"));
    assert!(refusal("redis://h?prefix=a&prefix=b").contains("twice"));
    assert!(refusal("redis://h?protocol=4").contains("resp3 or resp2"));
    assert!(refusal("redis://h?call_timeout=2").contains("with its unit"));
    assert!(refusal("redis://h?call_timeout=1ms").contains("from 10ms"));
    assert!(refusal("redis://h?prefix=~tenure:x").contains("~tenure:"));
    assert!(refusal("redis://h/zero").contains("database number"));
    assert!(refusal("redis:h").contains("redis://host"));
    assert!(refusal("redis:/h").contains("redis://host"));
    assert!(refusal("redis://u:a/b@h").contains("`/` as %2F"));
    assert!(refusal("redis://h?db=1").contains("redis://host/1"));
    assert!(refusal("redis://h#insecure").contains('#'));
}

#[test]
fn several_servers_in_the_url_of_one_are_asked_about() {
    for url in ["redis://a:1,b:2", "redis://a,b", "rediss://u:p@a:1,b:2/3"] {
        let text = refusal(url);
        for meant in [
            "redlock://",
            "redis+sentinel://",
            "redis+cluster://",
            "redis+all://",
        ] {
            assert!(text.contains(meant), "{meant} is missing in: {text}");
        }
    }
    assert!(!refusal("redis://:pass,word/1@host:x").contains("several"));
    assert!(Options::parse("redis://:pass,word@host").is_ok());
}

#[test]
fn no_text_shows_the_password() {
    let secret = "hunter2";
    for url in [
        "redis://u:hunter2@h:port",
        "redis://u:hunter2@h/zero",
        "redis://u:hunter2@h?nonsense=1",
        "redis://u:hunter2@h#x",
        "ftp://u:hunter2@h",
        "redis+unix:///s?pass=hunter2&bad=1",
    ] {
        assert!(!refusal(url).contains(secret), "{url}");
    }
    let shown = format!("{:?}", options("redis://u:hunter2@h"));
    assert!(!shown.contains(secret), "{shown}");
}
