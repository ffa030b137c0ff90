//! Who we are, in words for people: the default [`Party`] of a client.

use tenure_core::Party;

/// This process, for people to read: `user@host`, host and process id.
///
/// The user is the one that the process runs as, by `/etc/passwd`; users kept elsewhere are taken
/// from `$USER` or `$LOGNAME`, which cron and `su` may leave unset or wrong.
#[must_use]
pub fn this_process() -> Party {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let id = rustix::process::getuid().as_raw();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = account(&accounts, id).map(str::to_owned);
    let user = user.or_else(|| ["USER", "LOGNAME"].iter().find_map(|name| variable(name)));
    let user = user.unwrap_or_else(|| format!("uid{id}"));
    Party::new(&format!("{user}@{host}"), "", &host, std::process::id())
}

/// The name of a user in the form of `/etc/passwd`: `name:password:id:…`.
fn account(accounts: &str, id: u32) -> Option<&str> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(id)).then_some(name)
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_its_number() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nbroken\ndeploy:x:1001:1001::/home:/bin/sh\n";
        assert_eq!(account(accounts, 1001), Some("deploy"));
        assert_eq!(account(accounts, 0), Some("root"));
        assert_eq!(account(accounts, 7), None);
    }
}
