//! Finding the command before the lock is taken: a typo must not cost anybody a turn.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The search path of a process that has none, as `execvp` takes it.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds the file that `name` means, as `execvp` would.
///
/// It may be gone or changed when the job starts: that is then a
/// [`SpawnError`](super::SpawnError).
///
/// # Errors
/// 127 if there is no such file, 126 if there is one that cannot be executed.
pub fn resolve_program(name: &OsStr) -> Result<PathBuf, ProgramError> {
    resolve_in(name, std::env::var_os("PATH"))
}

/// A command that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramError {
    /// What was asked for.
    pub name: OsString,
    /// What is wrong with it.
    pub kind: ProgramErrorKind,
    /// It looks like a line for a shell rather than like a command.
    pub looks_like_shell: bool,
}

/// What is wrong with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramErrorKind {
    /// There is no such file.
    NotFound,
    /// The file is there, but may not be executed.
    NotExecutable(PathBuf),
    /// It is a folder.
    IsFolder(PathBuf),
}

impl ProgramError {
    /// The exit code of `tenure run`, as shells have it.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ProgramErrorKind::NotFound => 127,
            ProgramErrorKind::NotExecutable(_) | ProgramErrorKind::IsFolder(_) => 126,
        }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.to_string_lossy();
        match &self.kind {
            ProgramErrorKind::NotFound if name.contains('/') => {
                write!(out, "{name}: no such file")
            }
            ProgramErrorKind::NotFound => write!(out, "{name}: command not found"),
            ProgramErrorKind::NotExecutable(path) => {
                write!(out, "{}: not executable", path.display())
            }
            ProgramErrorKind::IsFolder(path) => write!(out, "{}: is a folder", path.display()),
        }
    }
}

impl std::error::Error for ProgramError {}

fn resolve_in(name: &OsStr, search_path: Option<OsString>) -> Result<PathBuf, ProgramError> {
    let refuse = |kind| ProgramError {
        name: name.to_owned(),
        kind,
        looks_like_shell: looks_like_shell(name),
    };
    if name.is_empty() {
        return Err(refuse(ProgramErrorKind::NotFound));
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return check(&path).map(|()| path).map_err(refuse);
    }
    let search_path = search_path.unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    let mut obstacle = ProgramErrorKind::NotFound;
    for folder in std::env::split_paths(&search_path) {
        // An empty entry means the current folder.
        let folder = if folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            folder
        };
        let path = folder.join(name);
        match check(&path) {
            Ok(()) => return Ok(path),
            // Search on; if nothing better comes, say what was found first.
            Err(found @ ProgramErrorKind::NotExecutable(_))
                if obstacle == ProgramErrorKind::NotFound =>
            {
                obstacle = found;
            }
            Err(_) => {}
        }
    }
    Err(refuse(obstacle))
}

fn check(path: &Path) -> Result<(), ProgramErrorKind> {
    let Ok(metadata) = path.metadata() else {
        return Err(ProgramErrorKind::NotFound);
    };
    if metadata.is_dir() {
        return Err(ProgramErrorKind::IsFolder(path.to_owned()));
    }
    access(path, Access::EXEC_OK).map_err(|_| ProgramErrorKind::NotExecutable(path.to_owned()))
}

fn looks_like_shell(name: &OsStr) -> bool {
    name.as_bytes()
        .iter()
        .any(|byte| byte.is_ascii_whitespace() || b"|&;<>()$`\"'*?".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn folder_with(name: &str, mode: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn an_executable_in_the_path_is_found() {
        let folder = folder_with("job", 0o755);
        let path = Some(folder.path().as_os_str().to_owned());
        assert_eq!(
            resolve_in(OsStr::new("job"), path),
            Ok(folder.path().join("job"))
        );
    }

    #[test]
    fn a_later_executable_wins_over_an_earlier_file_without_permission() {
        let (plain, good) = (folder_with("job", 0o644), folder_with("job", 0o755));
        let path = std::env::join_paths([plain.path(), good.path()]).unwrap();
        assert_eq!(
            resolve_in(OsStr::new("job"), Some(path)),
            Ok(good.path().join("job"))
        );
    }

    #[test]
    fn a_file_without_permission_is_126_and_an_absent_one_127() {
        let folder = folder_with("job", 0o644);
        let path = || Some(folder.path().as_os_str().to_owned());
        let code = |name: &str| {
            resolve_in(OsStr::new(name), path())
                .unwrap_err()
                .exit_code()
        };
        assert_eq!(code("job"), 126);
        assert_eq!(code("jib"), 127);
        assert_eq!(code("/"), 126);
        assert_eq!(code("/no/such/file"), 127);
        assert_eq!(code(""), 127);
    }

    #[test]
    fn a_shell_line_is_recognised() {
        let error = resolve_in(OsStr::new("a | b > c"), None).unwrap_err();
        assert_eq!(error.exit_code(), 127);
        assert!(error.looks_like_shell);
        let error = resolve_in(OsStr::new("no-such-command"), None).unwrap_err();
        assert!(!error.looks_like_shell);
    }
}
