//! Who we are, in words for people: the default [`Party`] of a client.

use tenure_core::Party;

/// `user@host`, host and process id of this process.
pub(crate) fn this_process() -> Party {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let user = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let user = user.filter(|user| !user.is_empty());
    let user = user.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
    Party::new(&format!("{user}@{host}"), "", &host, std::process::id())
}
