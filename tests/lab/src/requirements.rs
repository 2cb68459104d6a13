//! What a machine must have left for one more lab.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A lab of six machines holds about 1.3 GB; the rest is room for what is tested in it.
const MEMORY_MB: u64 = 1_800;
/// etcd, logs and the audit log of some hours.
const DISK_MB: u64 = 500;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "a lab needs {MEMORY_MB} MB of memory and {available} MB are available: end another lab with `vmi-lab down`, or another program"
    )]
    Memory { available: u64 },
    #[error("a lab needs {DISK_MB} MB on the disk of {folder} and {available} MB are free: clear some, or set VMI_LAB_HOME to a folder on another disk", folder = .folder.display())]
    Disk { folder: PathBuf, available: u64 },
    #[error("cannot tell what this machine has left: {0}")]
    Unknown(#[from] io::Error),
}

/// Whether one more lab fits.
pub fn check(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder)?;
    let disk = rustix::fs::statvfs(folder).map_err(io::Error::from)?;
    judge(available_memory_mb(&fs::read_to_string("/proc/meminfo")?), disk.f_bavail * disk.f_frsize / 1_000_000, folder)
}

/// How many more labs there is memory for; where that cannot be told, any number.
pub fn labs_that_fit() -> io::Result<u64> {
    Ok(available_memory_mb(&fs::read_to_string("/proc/meminfo")?).map_or(u64::MAX, |available| available / MEMORY_MB))
}

fn judge(memory: Option<u64>, disk: u64, folder: &Path) -> Result<(), Error> {
    match memory {
        Some(available) if available < MEMORY_MB => return Err(Error::Memory { available }),
        _ => {}
    }
    if disk < DISK_MB {
        return Err(Error::Disk { folder: folder.to_owned(), available: disk });
    }
    Ok(())
}

fn available_memory_mb(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_or_disk_is_refused_with_both_figures() {
        let folder = Path::new("/labs");
        let memory = judge(Some(900), 10_000, folder).unwrap_err().to_string();
        assert!(memory.contains("1800 MB") && memory.contains("900 MB"), "{memory}");
        let disk = judge(Some(9_000), 20, folder).unwrap_err().to_string();
        assert!(disk.contains("500 MB") && disk.contains("20 MB") && disk.contains("/labs"), "{disk}");
        judge(Some(9_000), 10_000, folder).unwrap();
    }

    #[test]
    fn available_memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(available_memory_mb("MemTotal:  24000000 kB\nMemAvailable:   2048000 kB\n"), Some(2048));
    }
}
