//! [`Place`]: where the lock file is, and [`Folder`]: the side folder with everything that belongs
//! to running processes. Both are checked before they are trusted.
//!
//! Nothing here ever opens the lock file itself once it exists: closing any descriptor of it would
//! drop the POSIX locks that SQLite holds on it in this process.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tenure_core::{Error, ErrorKind, Inbox};

use super::{Options, errors, filesystem};

/// The lock file's true path, and that of its side folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: PathBuf,
    folder: PathBuf,
}

/// Which file a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Place {
    /// Finds the true path, so that two names of one file are seen to be one. Creates the folder of the
    /// user's own file, for its user alone; any other must exist, because a slip in a path would
    /// otherwise be a store that nobody else asks.
    pub(super) fn resolve(path: &Path) -> Result<Self, Error> {
        let own = Options::default_path();
        let is_own = own.is_ok_and(|own| std::path::absolute(path).is_ok_and(|path| path == own));
        Self::of(path, is_own)
    }

    /// The same for a file that was in use and is gone, perhaps together with its folder.
    pub(super) fn resolve_again(&self) -> Result<Self, Error> {
        Self::of(&self.file, true)
    }

    fn of(path: &Path, create: bool) -> Result<Self, Error> {
        let wrong = |cause: std::io::Error| {
            let cause = Errno::from_io_error(&cause).unwrap_or(Errno::IO);
            errors::of_system(cause, "use the folder of the lock file", path)
        };
        let absolute = std::path::absolute(path).map_err(wrong)?;
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(not_a_file(path));
        };
        if !parent.is_dir() {
            if !create {
                return Err(no_folder(parent));
            }
            let mut builder = std::fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .map_err(wrong)?;
        }
        let mut file = parent.canonicalize().map_err(wrong)?.join(name);
        if file.is_symlink() {
            file = file.canonicalize().map_err(wrong)?;
        }
        let mut folder = file.clone().into_os_string();
        folder.push(".d");
        let folder = folder.into();
        Ok(Self { file, folder })
    }

    /// Which file the path leads to now; `None` if there is none.
    pub(super) fn identity(&self) -> Option<Identity> {
        rustix::fs::stat(&self.file).ok().map(|stat| Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }

    /// Creates the file for its user alone if it is missing; refuses what cannot be a lock file.
    pub(super) fn create_file(&self) -> Result<(), Error> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open(&self.file, flags, Mode::RUSR | Mode::WUSR) {
            Ok(_) => Ok(()),
            Err(Errno::EXIST) => match rustix::fs::stat(&self.file) {
                Ok(stat) => self.check_file(&stat),
                Err(cause) => Err(errors::of_system(cause, "find the lock file", &self.file)),
            },
            Err(cause) => Err(errors::of_system(cause, "create the lock file", &self.file)),
        }
    }

    fn check_file(&self, stat: &Stat) -> Result<(), Error> {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(not_a_file(&self.file));
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "the lock file belongs to another user, who could take away or forge locks: use \
                 a file of your own, or run as that user",
            )
            .with("file", self.file.display())
            .with("its user", stat.st_uid));
        }
        if stat.st_nlink > 1 {
            return Err(Error::new(
                ErrorKind::Configuration,
                "the lock file has a second name (a hard link), under which SQLite would damage \
                 it: remove one of the names",
            )
            .with("file", self.file.display()));
        }
        Ok(())
    }

    /// Refuses a path that leads to what cannot be a lock file, before anything is put beside it.
    pub(super) fn check(&self) -> Result<(), Error> {
        match rustix::fs::stat(&self.file) {
            Ok(stat) => self.check_file(&stat),
            Err(_) => Ok(()),
        }
    }

    /// Opens the side folder, creating it if it is missing; refuses a file system that other
    /// machines may write to, and a folder that others could meddle with.
    pub(super) fn open_folder(&self, options: &Options) -> Result<Folder, Error> {
        let wrong = |cause| errors::of_system(cause, "use the side folder", &self.folder);
        self.check_filesystem(options)?;
        let is_new = match rustix::fs::mkdir(&self.folder, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(cause) => return Err(wrong(cause)),
        };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(&self.folder, flags, Mode::empty()).map_err(wrong)?;
        let stat = rustix::fs::fstat(&descriptor).map_err(wrong)?;
        let open_to_others = stat.st_mode & 0o022 != 0;
        if open_to_others || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "others can write to the side folder of the lock file and could forge locks: \
                 remove it, or make it yours alone (chmod 700)",
            )
            .with("folder", self.folder.display()));
        }
        Ok(Folder {
            path: self.folder.clone(),
            descriptor,
            is_new,
        })
    }

    fn check_filesystem(&self, options: &Options) -> Result<(), Error> {
        filesystem::check(self.filesystem()?, options.allow_fuse)
            .map_err(|error| error.with("file", self.file.display()))
    }

    /// The kind of file system that the lock file is on.
    pub(super) fn filesystem(&self) -> Result<u64, Error> {
        let parent = self.file.parent().unwrap_or(Path::new("/"));
        let wrong = |cause| errors::of_system(cause, "look at the folder", parent);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(parent, flags, Mode::empty()).map_err(wrong)?;
        filesystem::kind_of(descriptor).map_err(wrong)
    }
}

fn no_folder(parent: &Path) -> Error {
    let what = match parent.exists() {
        true => "what the lock file is to be in is not a folder: check the path",
        false => {
            "the folder of the lock file does not exist: create it (mkdir -p), or check the path"
        }
    };
    Error::new(ErrorKind::Configuration, what).with("folder", parent.display())
}

fn not_a_file(path: &Path) -> Error {
    Error::new(
        ErrorKind::Configuration,
        "the lock file's path leads to something that is not a file: name a file",
    )
    .with("path", path.display())
}

/// The side folder: doorbells, signs of life, and the two files that processes queue at.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
    is_new: bool,
}

/// Where processes queue to open the lock file.
pub(super) const OPEN_LOCK: &str = "open.lock";
/// The end of the name of a doorbell.
pub(super) const BELL: &str = ".bell";
/// The end of the name of a sign of life.
pub(super) const ALIVE: &str = ".alive";
/// `sun_path` is 108 bytes long, with a zero at the end.
const LONGEST_ADDRESS: usize = 107;

impl Folder {
    /// Opens a file in the folder, for its user alone.
    pub(super) fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(&self.descriptor, name, flags | OFlags::CLOEXEC, mode)
    }

    /// Removes the folder again if it was made for a file that turned out to be none of ours.
    pub(super) fn remove_if_new(&self) {
        if self.is_new {
            // Whatever fails, an empty folder is left behind and harms nobody.
            let _ = rustix::fs::unlinkat(&self.descriptor, OPEN_LOCK, AtFlags::empty());
            let _ = rustix::fs::rmdir(&self.path);
        }
    }

    /// Opens a file that is there to be locked, creating it if it is missing.
    pub(super) fn open_lock(&self, name: &str) -> Result<OwnedFd, Error> {
        self.open(name, OFlags::CREATE | OFlags::RDWR)
            .map_err(|cause| errors::of_system(cause, "open a side file", &self.path.join(name)))
    }

    /// Where the doorbell of `inbox` is. A path that is too long for a socket's address is
    /// shortened by way of the folder's descriptor.
    pub(super) fn bell(&self, inbox: &Inbox) -> PathBuf {
        let path = self.path.join(format!("{inbox}{BELL}"));
        if path.as_os_str().len() <= LONGEST_ADDRESS {
            return path;
        }
        let folder = self.descriptor.as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{folder}/{inbox}{BELL}"))
    }

    /// Removes a file from the folder, if it is there.
    pub(super) fn remove(&self, name: &str) {
        // Tidiness only: a file that stays costs a directory entry.
        let _ = rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty());
    }

    /// The names of the files in the folder that end in `suffix`, without it.
    pub(super) fn inboxes(&self, suffix: &str) -> Vec<Inbox> {
        let Ok(entries) = std::fs::read_dir(&self.path) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| Inbox::parse(entry.file_name().to_str()?.strip_suffix(suffix)?))
            .collect()
    }

    /// For messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::resolve(&folder.path().join("locks.db")).unwrap();
        place.create_file().unwrap();
        let mut stat = rustix::fs::stat(&place.file).unwrap();
        place.check_file(&stat).unwrap();
        stat.st_uid += 1;
        let error = place.check_file(&stat).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden);
        assert!(error.to_string().contains("another user"), "{error}");
    }

    #[test]
    fn two_spellings_of_a_path_are_one_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let plain = Place::resolve(&folder.path().join("locks.db")).unwrap();
        let spelt = Place::resolve(&folder.path().join("./sub/../locks.db")).unwrap();
        assert_eq!(plain, spelt);
    }

    #[test]
    fn a_folder_that_is_missing_is_not_made_up() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("nope");
        let error = Place::resolve(&missing.join("locks.db")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("mkdir -p"), "{error}");
        assert!(!missing.exists());
    }

    #[test]
    fn a_long_path_is_shortened_for_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Inbox::from_bytes([1; 16]);
        for (name, short) in [("short".to_owned(), true), ("long".repeat(20), false)] {
            let parent = folder.path().join(name);
            std::fs::create_dir(&parent).unwrap();
            let options = Options::new(parent.join("locks.db"));
            let place = Place::resolve(&options.path).unwrap();
            let bell = place.open_folder(&options).unwrap().bell(&inbox);
            assert!(bell.as_os_str().len() <= LONGEST_ADDRESS, "{bell:?}");
            assert_eq!(bell.starts_with(&place.folder), short, "{bell:?}");
        }
    }
}
