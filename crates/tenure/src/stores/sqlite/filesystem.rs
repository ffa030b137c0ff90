//! Which file systems may carry a lock file: only those that one kernel alone writes to.

use std::os::fd::AsFd;

use rustix::fs::fstatfs;
use tenure_core::{Error, ErrorKind};

/// File systems that another machine may write to at the same time, by the number that `statfs`
/// reports. There, neither SQLite's locks nor our boot id mean what they should.
const SHARED: [(u64, &str); 16] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x786f_4256, "a VirtualBox shared folder"),
    (0xbacb_acbc, "a VMware shared folder"),
];

/// FUSE carries sshfs and virtiofs as well as harmless local file systems.
const FUSE: u64 = 0x6573_5546;

const LOCAL: [(u64, &str); 9] = [
    (0xef53, "ext4"),
    (0x5846_5342, "XFS"),
    (0x9123_683e, "Btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "ZFS"),
    (0xf2f5_2010, "F2FS"),
    (0xca45_1a4e, "bcachefs"),
    (0xf15f, "eCryptfs"),
];

/// The kind of file system that a folder is on, as `statfs` reports it.
pub(super) fn kind_of(folder: impl AsFd) -> Result<u64, rustix::io::Errno> {
    // The number is 32 bits wide; where the field is signed and wider, the upper half is noise.
    fstatfs(folder).map(|answer| answer.f_type as u64 & 0xffff_ffff)
}

/// Refuses a file system that other machines may write to.
///
/// # Errors
/// [`ErrorKind::Configuration`] that names it and says what to do.
pub(super) fn check(kind: u64, allow_fuse: bool) -> Result<(), Error> {
    if let Some((_, name)) = SHARED.iter().find(|(number, _)| *number == kind) {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "the lock file is on {name}, which other machines may use at the same time: a \
                 SQLite store excludes only processes of one machine; put the file on a local \
                 disk, or use a server such as redis://"
            ),
        ));
    }
    if kind == FUSE && !allow_fuse {
        return Err(Error::new(
            ErrorKind::Configuration,
            "the lock file is on a FUSE file system, which may hide a network (sshfs, virtiofs); \
             put it on a local disk or, if you know that only this machine uses it, add \
             ?fuse=allow to the URL",
        ));
    }
    Ok(())
}

/// The name of a file system, or its number.
pub(super) fn name_of(kind: u64) -> String {
    let known = SHARED
        .iter()
        .chain(&LOCAL)
        .find(|(number, _)| *number == kind);
    match known {
        Some((_, name)) => (*name).to_owned(),
        None if kind == FUSE => "FUSE".to_owned(),
        None => format!("type {kind:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_refused_by_name() {
        for (kind, name) in SHARED {
            let error = check(kind, true).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.to_string().contains("local disk"), "{error}");
        }
    }

    #[test]
    fn fuse_needs_to_be_allowed() {
        assert!(
            check(FUSE, false)
                .unwrap_err()
                .to_string()
                .contains("?fuse=allow")
        );
        assert!(check(FUSE, true).is_ok());
    }

    #[test]
    fn local_file_systems_are_fine() {
        for (kind, name) in LOCAL {
            assert!(check(kind, false).is_ok());
            assert_eq!(name_of(kind), name);
        }
        assert_eq!(name_of(0x1234), "type 0x1234");
    }
}
