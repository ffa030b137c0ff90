//! The SQLite store, on a file of its own.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure::core::{BoxFuture, Error, Store};
use tenure::stores::sqlite::SqliteStore;
use tenure_conformance::{Subject, check};

use crate::support::wait::{breath, real_time};

#[tokio::test]
async fn sqlite_conforms() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    check(&Sqlite { folder }).await.assert_all_passed();
}

struct Sqlite {
    folder: TempDir,
}

impl Subject for Sqlite {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, Error>> {
        Box::pin(async {
            let file = self.folder.path().join("locks.db");
            let store = SqliteStore::connect(file.as_path()).await?;
            Ok(Arc::new(store) as Arc<dyn Store>)
        })
    }

    fn pass_time(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(real_time(duration))
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(breath())
    }

    fn time_tolerance(&self) -> Duration {
        Duration::ZERO
    }

    fn sees_listeners(&self) -> bool {
        true
    }
}
