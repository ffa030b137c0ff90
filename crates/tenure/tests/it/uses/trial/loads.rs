//! Coalesced loads: never two at once, and everybody gets what was loaded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{Cached, Error, Fence, Tenure};

use super::{Course, Helper, TTL, WAIT};
use crate::support::wait::real_time;

/// A cache, and what is known of those who load.
#[derive(Default)]
pub(super) struct Loads {
    cache: Mutex<HashMap<usize, (String, Fence)>>,
    /// So many load each page.
    loading: Mutex<HashMap<usize, usize>>,
    count: AtomicUsize,
}

/// Somebody loads, until it is dropped.
struct Loading<'a>(&'a Loads, usize);

impl Loads {
    fn begin(&self, page: usize) -> Loading<'_> {
        let mut loading = self.loading.lock().unwrap();
        let here = loading.entry(page).or_default();
        *here += 1;
        assert_eq!(*here, 1, "page {page} is loaded by two at once");
        Loading(self, page)
    }

    fn read(&self, page: usize) -> Option<String> {
        let cache = self.cache.lock().unwrap();
        cache.get(&page).map(|(text, _)| text.clone())
    }

    async fn load(&self, page: usize) -> String {
        let _loading = self.begin(page);
        // Far shorter than the lease, so that nobody is overtaken.
        let long = if page.is_multiple_of(4) { 300 } else { 20 };
        real_time(Duration::from_millis(long)).await;
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        format!("page {page}, load {number}")
    }

    fn write(&self, page: usize, text: String, fence: Fence) {
        let before = self.cache.lock().unwrap().insert(page, (text, fence));
        assert_eq!(before, None, "page {page} was loaded again");
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let mut loading = self.0.loading.lock().unwrap();
        *loading.entry(self.1).or_default() -= 1;
    }
}

pub(super) async fn get(tenure: Tenure, course: Arc<Course>, loads: Arc<Loads>) {
    let mut page = 0;
    while !course.is_over() {
        let coalesce = tenure.coalesce(format!("trial/{page}")).ttl(TTL).wait(WAIT);
        let read = || async { Ok::<_, Error>(loads.read(page).map(Cached::fresh)) };
        let load = || async { Ok(loads.load(page).await) };
        let write = |text, fence| {
            loads.write(page, text, fence);
            async { Ok(()) }
        };
        match coalesce.get(read, load, write).await {
            Ok(served) => {
                assert_eq!(Some(served.value), loads.read(page));
                course.step(Helper::Coalesce);
                page += 1;
            }
            Err(error) => course.sit_out(Helper::Coalesce, &error).await,
        }
    }
}
