//! [`Shared`]: what all stores of this process on one file have in common: one writer thread, one
//! connection, one set of clients.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tenure_core::Error;

use super::boot::Boot;
use super::clients::Clients;
use super::place::{Folder, Place};
use super::writer::{Job, Writer};
use super::{Options, errors};

/// The side folder, once the file has been opened; another one if it was replaced.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentFolder(Arc<Mutex<Option<Arc<Folder>>>>);

impl CurrentFolder {
    pub(super) fn set(&self, folder: Arc<Folder>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    }

    fn get(&self) -> Option<Arc<Folder>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// One file, as used by this process.
#[derive(Debug)]
pub(super) struct Shared {
    jobs: Sender<Job>,
    pub(super) clients: Arc<Clients>,
    folder: CurrentFolder,
    pub(super) place: Place,
}

impl Shared {
    /// The one for this file, with its writer thread started; the file is not opened yet.
    pub(super) fn get(options: &Options, boot: Boot) -> Result<Arc<Self>, Error> {
        static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Shared>>>> = Mutex::new(None);
        let place = Place::resolve(&options.path)?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        open.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = open.get(&place.file).and_then(Weak::upgrade) {
            return Ok(shared);
        }
        let shared = Self::start(place.clone(), options.clone(), boot)?;
        open.insert(place.file, Arc::downgrade(&shared));
        Ok(shared)
    }

    fn start(place: Place, options: Options, boot: Boot) -> Result<Arc<Self>, Error> {
        let (jobs, inbound) = channel();
        let clients = Arc::new(Clients::default());
        let folder = CurrentFolder::default();
        let shared = Arc::new(Self {
            jobs,
            clients: clients.clone(),
            folder: folder.clone(),
            place: place.clone(),
        });
        let writer = Writer::new(place, options, boot, inbound, clients, folder, &shared)?;
        std::thread::Builder::new()
            .name("tenure-sqlite".to_owned())
            .spawn(move || writer.run())
            .map_err(|cause| {
                Error::new(
                    tenure_core::ErrorKind::Refused,
                    "cannot start a thread: too many are running",
                )
                .because(cause)
            })?;
        Ok(shared)
    }

    /// Hands a job to the writer. If its thread is gone, the job's caller sees its reply dropped.
    pub(super) fn send(&self, job: Job) {
        let _ = self.jobs.send(job);
    }

    /// The side folder; known once the file has been opened.
    pub(super) fn folder(&self) -> Result<Arc<Folder>, Error> {
        self.folder.get().ok_or_else(errors::of_ended_thread)
    }
}
