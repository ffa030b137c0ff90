//! What is on the disk: modes, clean-up, deletion, boots, and files that cannot be lock files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rusqlite::Connection;
use tenure::core::{Action, ErrorKind, Fence, LockName, Outcome, Store};
use tenure::stores::sqlite::{Options, SqliteStore};

use super::support::{Client, Scratch, owner};
use crate::support::wait::{eventually, eventually_async};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("it exists")
        .permissions()
        .mode()
        & 0o777
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| entry.file_name().into_string().expect("text"))
        .collect()
}

fn refusal(file: &Path) -> (ErrorKind, String) {
    let error = SqliteStore::open(file).expect_err("it is no lock file");
    (error.kind(), error.to_string())
}

#[tokio::test(start_paused = true)]
async fn connecting_ends_although_another_process_was_stopped_while_opening_the_file() {
    let scratch = Scratch::new();
    let file = scratch.folder().join("locks.db");
    drop(SqliteStore::open(file.as_path()).expect("a new file"));
    let stopped = fs::File::open(scratch.folder().join("locks.db.d/open.lock")).unwrap();
    stopped.lock().unwrap();
    let url = format!("sqlite:{}", file.display());
    let error = tenure::connect(&url).await.expect_err("it cannot");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn files_are_for_their_user_alone() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = scratch.folder().join("locks.db");
    let client = Client::new(&file).await;
    client.take("a", owner()).await;
    assert_eq!(
        mode(scratch.folder()),
        0o755,
        "an existing folder is left alone"
    );
    for name in entries(file.parent().unwrap()) {
        let expected = if name == "locks.db.d" { 0o700 } else { 0o600 };
        assert_eq!(mode(&file.with_file_name(&name)), expected, "{name}");
    }
    let side = file.with_file_name("locks.db.d");
    for name in entries(&side)
        .iter()
        .filter(|name| !name.ends_with(".bell"))
    {
        assert_eq!(mode(&side.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_client_that_held_nothing_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let who = owner();
    let fence = client.take("a", who).await.fence;
    client.release("a", who, fence).await;
    assert_eq!(
        entries(&scratch.side_folder()).len(),
        4,
        "two locks, a bell, a sign of life"
    );
    drop(client);
    let mut left = entries(&scratch.side_folder());
    left.sort();
    assert_eq!(left, ["gate.lock", "open.lock"]);
}

#[tokio::test]
async fn a_path_that_is_too_long_for_a_socket_works_all_the_same() {
    let scratch = Scratch::new();
    let deep = scratch.folder().join("a-folder-with-a-long-name".repeat(5));
    fs::create_dir(&deep).unwrap();
    let file = deep.join("and-a-file-with-a-long-name.db");
    let (one, two) = (Client::new(&file).await, Client::new(&file).await);
    let (first, second) = (owner(), owner());
    let fence = one.take("a", first).await.fence;
    two.queue("a", second).await;
    one.release("a", first, fence).await;
    two.pushed(second);
}

#[tokio::test]
async fn another_name_of_the_same_file_is_the_same_store() {
    let scratch = Scratch::new();
    let link = scratch.folder().join("link.db");
    let one = Client::new(scratch.file()).await;
    std::os::unix::fs::symlink(scratch.file(), &link).unwrap();
    let two = Client::new(&link).await;
    one.take("a", owner()).await;
    assert!(matches!(two.acquire("a", owner()).await, Outcome::Busy(_)));
}

/// Makes the file look as if it had last been used in another boot.
fn reboot(file: &Path) {
    let connection = Connection::open(file).expect("a database");
    connection
        .execute("UPDATE store SET boot_id = 'another boot'", [])
        .expect("a lock file");
}

#[tokio::test]
async fn another_boot_voids_leases_and_fences_still_grow() {
    let scratch = Scratch::new();
    let before = Client::new(scratch.file()).await;
    let fence = before.take("a", owner()).await.fence;
    before.queue("a", owner()).await;
    drop(before);
    reboot(&scratch.file());
    // As if the wall clock had been an hour ahead in the earlier boot.
    let ahead = Fence::from_u64(fence.as_u64() + 3_600_000_000);
    let raise = format!("UPDATE lock SET last_fence = {ahead}");
    Connection::open(scratch.file())
        .unwrap()
        .execute(&raise, [])
        .unwrap();
    let after = Client::new(scratch.file()).await;
    assert_eq!(
        after.store.list("").await.unwrap().locks,
        [],
        "all leases are void"
    );
    assert!(after.take("a", owner()).await.fence > ahead);
    assert!(after.take("never seen before", owner()).await.fence > ahead);
}

#[tokio::test]
async fn a_file_that_another_kernel_took_over_is_refused() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    reboot(&scratch.file());
    let error = client.reply("a", Action::Inspect).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("another machine"), "{error}");
}

#[tokio::test]
async fn a_container_with_a_boot_id_of_its_own_voids_nothing_while_others_live() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    client.take("a", owner()).await;
    drop(client);
    reboot(&scratch.file());
    // What a process of the same kernel, in another container, looks like.
    let sign = scratch
        .folder()
        .join("locks.db.d/0123456789abcdef0123456789abcdef.alive");
    let process = fs::File::create(&sign).unwrap();
    process.lock().unwrap();
    let (kind, text) = refusal(&scratch.file());
    assert_eq!(kind, ErrorKind::Configuration);
    assert!(text.contains("boot id"), "{text}");
    drop(process);
    drop(SqliteStore::open(scratch.file().as_path()).expect("now it is another boot"));
}

#[tokio::test]
async fn a_deleted_file_is_noticed_and_fences_still_grow() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let who = owner();
    let fence = client.take("a", who).await.fence;
    for name in ["locks.db", "locks.db-wal", "locks.db-shm"] {
        fs::remove_file(scratch.folder().join(name)).unwrap();
    }
    let renewed = client.renew("a", who, fence).await;
    assert_eq!(
        renewed,
        Outcome::NotHeld { forced: None },
        "the holder is told"
    );
    assert!(client.take("a", owner()).await.fence > fence);
    assert!(scratch.file().exists());
}

#[tokio::test]
async fn a_lost_doorbell_costs_a_poll_and_not_a_lease() {
    let scratch = Scratch::new();
    let (one, two) = (
        Client::new(scratch.file()).await,
        Client::new(scratch.file()).await,
    );
    let (first, second) = (owner(), owner());
    let fence = one.take("a", first).await.fence;
    two.queue("a", second).await;
    // Somebody else's connection, so that nobody in this process is told directly: as if the
    // releasing process had been killed between its commit and its message.
    let name = LockName::new("a").unwrap();
    let connection = Connection::open(scratch.file()).unwrap();
    let hand_over = format!(
        "BEGIN IMMEDIATE; DELETE FROM holder;
         INSERT INTO holder SELECT name, owner, mode, 0, 0, {next}, since, since + 30000000, anchor,
             who, label, host, pid FROM waiter;
         UPDATE lock SET last_fence = {next}; DELETE FROM waiter; COMMIT;",
        next = fence.as_u64() + 7,
    );
    connection.execute_batch(&hand_over).unwrap();
    let grant = two.pushed(second);
    assert_eq!(
        (grant.name, grant.fence.as_u64()),
        (name, fence.as_u64() + 7)
    );
}

#[tokio::test]
async fn what_killed_processes_left_is_removed() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let side = scratch.side_folder();
    // A bell that nobody answers and a sign of life that nobody gives.
    drop(UnixDatagram::bind(side.join("dead.bell")).unwrap());
    fs::write(side.join("dead.alive"), "").unwrap();
    eventually("tidied up", || {
        (!side.join("dead.alive").exists()).then_some(())
    });
    assert!(!side.join("dead.bell").exists());
    client.take("a", owner()).await;
}

#[tokio::test]
async fn names_that_nobody_uses_are_forgotten_but_not_their_fences() {
    let scratch = Scratch::new();
    drop(Client::new(scratch.file()).await);
    let old = 1_000_000;
    let connection = Connection::open(scratch.file()).unwrap();
    let insert = format!("INSERT INTO lock (name, last_fence) VALUES ('old', {old})");
    connection.execute(&insert, []).unwrap();
    let client = Client::new(scratch.file()).await;
    client.take("new", owner()).await;
    let names = || -> Vec<String> {
        let mut names = connection.prepare("SELECT name FROM lock").unwrap();
        names
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    eventually("forgotten", || (names() == ["new"]).then_some(()));
    let Outcome::State(snapshot) = client.ask("old", Action::Inspect).await else {
        panic!("a state is expected");
    };
    assert_eq!(snapshot.last_fence, Fence::from_u64(old));
}

#[test]
fn a_folder_is_not_a_lock_file() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.file()).unwrap();
    let (kind, message) = refusal(&scratch.file());
    assert_eq!(kind, ErrorKind::Configuration);
    assert!(message.contains("not a file"), "{message}");
    assert!(!scratch.file().with_extension("db.d").exists());
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let scratch = Scratch::new();
    fs::write(scratch.file(), "dear diary, today ".repeat(100)).unwrap();
    let (kind, message) = refusal(&scratch.file());
    assert_eq!(kind, ErrorKind::Configuration);
    assert!(message.contains("not a SQLite database"), "{message}");
    assert!(
        fs::read_to_string(scratch.file())
            .unwrap()
            .starts_with("dear diary")
    );
    assert!(!scratch.file().with_extension("db.d").exists());
}

#[test]
fn other_programs_databases_are_refused_and_left_alone() {
    let scratch = Scratch::new();
    let connection = Connection::open(scratch.file()).unwrap();
    connection
        .execute_batch("CREATE TABLE song (title TEXT)")
        .unwrap();
    let (kind, message) = refusal(&scratch.file());
    assert_eq!(kind, ErrorKind::Configuration);
    assert!(message.contains("another program"), "{message}");
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "delete", "not even the journal mode was changed");
}

#[test]
fn a_file_of_a_newer_tenure_is_refused() {
    let scratch = Scratch::new();
    drop(SqliteStore::open(scratch.file()).unwrap());
    let connection = Connection::open(scratch.file()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let (kind, message) = refusal(&scratch.file());
    assert_eq!(kind, ErrorKind::Configuration);
    assert!(
        message.contains("newer tenure") && message.contains("99"),
        "{message}"
    );
}

#[test]
fn a_hard_link_is_refused() {
    let scratch = Scratch::new();
    drop(SqliteStore::open(scratch.file()).unwrap());
    fs::hard_link(scratch.file(), scratch.folder().join("second.db")).unwrap();
    let (kind, message) = refusal(&scratch.file());
    assert_eq!(kind, ErrorKind::Configuration);
    assert!(message.contains("hard link"), "{message}");
}

#[test]
fn a_side_folder_that_others_can_write_to_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.side_folder()).unwrap();
    fs::set_permissions(scratch.side_folder(), fs::Permissions::from_mode(0o777)).unwrap();
    let (kind, message) = refusal(&scratch.file());
    assert_eq!(kind, ErrorKind::Forbidden);
    assert!(message.contains("chmod 700"), "{message}");
}

#[test]
fn a_path_through_a_file_is_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.folder().join("file"), "").unwrap();
    let (kind, message) = refusal(&scratch.folder().join("file/locks.db"));
    assert_eq!(kind, ErrorKind::Configuration);
    assert!(message.contains("check the path"), "{message}");
}

#[tokio::test]
async fn another_program_that_keeps_the_file_busy_is_named() {
    let scratch = Scratch::new();
    let mut options = Options::new(scratch.file());
    options.busy_timeout = std::time::Duration::from_millis(20);
    let client = Client::new(options).await;
    let connection = Connection::open(scratch.file()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let acquire = Action::Acquire(client.attempt(owner()));
    let error = client.reply("a", acquire).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("busy"), "{error}");
    connection.execute_batch("COMMIT").unwrap();
    client.take("a", owner()).await;
}

#[tokio::test]
async fn a_request_whose_caller_left_takes_nothing_but_still_gives_back() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let who = owner();
    let fence = client.take("held", who).await.fence;
    let connection = Connection::open(scratch.file()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Both wait for the file when their callers leave.
    let acquire = client.acquire("wanted", owner());
    let release = client.release("held", who, fence);
    assert!(futures_util::FutureExt::now_or_never(acquire).is_none());
    assert!(futures_util::FutureExt::now_or_never(release).is_none());
    connection.execute_batch("COMMIT").unwrap();
    eventually_async("given back", async || {
        client
            .store
            .list("")
            .await
            .unwrap()
            .locks
            .is_empty()
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_deleted_folder_is_made_again() {
    let scratch = Scratch::new();
    let file = scratch.folder().join("state/locks.db");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let old = Client::new(&file).await;
    old.take("a", owner()).await;
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    let (first, second) = (owner(), owner());
    let fence = old.take("a", first).await.fence;
    let new = Client::new(&file).await;
    new.queue("a", second).await;
    old.release("a", first, fence).await;
    new.pushed(second);
    assert!(matches!(old.acquire("a", owner()).await, Outcome::Busy(_)));
}

#[tokio::test]
async fn a_process_stopped_in_its_transaction_holds_up_writers_but_not_readers() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let holder = owner();
    client.take("a", holder).await;
    // What a stopped process would have: its turn at the gate, and SQLite's write lock.
    let gate = fs::File::open(scratch.side_folder().join("gate.lock")).unwrap();
    gate.lock().unwrap();
    let connection = Connection::open(scratch.file()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(client.store.list("").await.unwrap().locks.len(), 1);
    assert!(matches!(
        client.ask("a", Action::Inspect).await,
        Outcome::State(_)
    ));
    let late = client.acquire("b", owner());
    assert!(futures_util::FutureExt::now_or_never(late).is_none());
    connection.execute_batch("ROLLBACK").unwrap();
    gate.unlock().unwrap();
    client.take("b", owner()).await;
}
