//! Where labs live: one folder each below VMI_LAB_HOME, or below the machine's folder for temporary files, with a record that
//! tells what runs there. The record outlives a crash, so that the next `up` or `down` finds what is left.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::net::{BLOCKS, Block};
use crate::{net, process};

/// The kernel's limit for the path of a socket, its end mark included.
const SOCKET_PATH: usize = 108;

/// What is known of a lab from outside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub name: String,
    pub shape: String,
    pub block: Block,
    pub supervisor: u32,
    pub vcenters: Vec<VcenterRecord>,
    pub boot_seconds: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VcenterRecord {
    pub name: String,
    pub server: String,
    pub port: u16,
    pub username: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the record {path} cannot be read ({reason}): `vmi-lab down --all` clears it away", path = .path.display())]
    Record { path: PathBuf, reason: String },
    #[error("there is no lab {0:?}: `vmi-lab status` lists those that run, `vmi-lab up SHAPE` starts one")]
    NoSuchLab(String),
    #[error("{0} labs run, say which with --name: {1}")]
    Ambiguous(usize, String),
    #[error("no lab is running: `vmi-lab up SHAPE` starts one")]
    NoneRunning,
    #[error("a lab named {0:?} is running already: `vmi-lab down --name {0}` ends it, `--name` gives the new one another name")]
    Running(String),
    #[error("{0:?} cannot be a lab's name: letters, digits and dashes, at most 24 of them")]
    BadName(String),
    #[error("the lab's folder {folder} has too long a path for the sockets in it: set VMI_LAB_HOME to a shorter one", folder = .0.display())]
    TooLong(PathBuf),
    #[error(transparent)]
    Net(#[from] net::Error),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}

static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// Has this process keep its labs below `folder`, whatever the environment says. The first call decides.
pub fn use_folder(folder: &Path) {
    CHOSEN.get_or_init(|| folder.to_owned());
}

/// The folder of all labs of this user.
pub fn folder() -> PathBuf {
    if let Some(chosen) = CHOSEN.get() {
        return chosen.clone();
    }
    match std::env::var_os("VMI_LAB_HOME") {
        // Absolute, for pods have folders of their own as working directories and the path is the lab's mark.
        Some(folder) if !folder.is_empty() => std::path::absolute(&folder).unwrap_or_else(|_| PathBuf::from(&folder)),
        _ => std::env::temp_dir().join(format!("vmi-lab-{}", rustix::process::getuid().as_raw())),
    }
}

/// A name becomes part of paths that are deleted in the end: it must not lead anywhere else.
pub fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > 24 || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err(Error::BadName(name.to_owned()));
    }
    Ok(())
}

/// A lab's own folder.
pub fn of(name: &str) -> PathBuf {
    folder().join(name)
}

/// What a lab's own process has to say; beside the folder, for it begins before the folder is there.
pub fn log_of(name: &str) -> PathBuf {
    folder().join(format!("{name}.log"))
}

/// What a lab's processes carry in their environment.
pub fn mark(name: &str) -> String {
    of(name).display().to_string()
}

/// Held while labs are created or cleared, so that two commands never choose the same block or name.
pub struct Lock(#[expect(dead_code, reason = "the lock lasts as long as the open file")] File);

pub fn lock() -> Result<Lock, Error> {
    let folder = folder();
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let path = folder.join("lock");
    let file = File::create(&path).map_err(at(&path))?;
    file.lock().map_err(at(&path))?;
    Ok(Lock(file))
}

/// Every lab there is a folder for; a folder without a readable record is listed by name alone.
pub fn names() -> Result<Vec<String>, Error> {
    let folder = folder();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(&folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at(&folder))?;
        if entry.path().is_dir()
            && let Some(name) = entry.file_name().to_str()
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

pub fn read(name: &str) -> Result<Option<Record>, Error> {
    let path = of(name).join("lab.json");
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::Record { path, reason: error.to_string() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(&path)(error)),
    }
}

/// Written whole under another name and then renamed: a record is never half there.
pub fn write(record: &Record) -> Result<(), Error> {
    let folder = of(&record.name);
    let (path, draft) = (folder.join("lab.json"), folder.join("lab.json.new"));
    let text = serde_json::to_vec_pretty(record).map_err(|error| Error::Record { path: path.clone(), reason: error.to_string() })?;
    fs::write(&draft, text).map_err(at(&draft))?;
    fs::rename(&draft, &path).map_err(at(&path))
}

/// Whether the lab's supervisor is alive: a process with that number that carries the lab's mark.
pub fn is_running(record: &Record) -> bool {
    process::marked(Some(&mark(&record.name))).is_ok_and(|pids| pids.contains(&record.supervisor))
}

/// The running lab named so, or the only one.
pub fn choose(name: Option<&str>) -> Result<Record, Error> {
    if let Some(name) = name {
        check_name(name)?;
        return read(name)?.filter(is_running).ok_or_else(|| Error::NoSuchLab(name.to_owned()));
    }
    let mut running = running()?;
    match running.len() {
        0 => Err(Error::NoneRunning),
        1 => Ok(running.remove(0)),
        count => Err(Error::Ambiguous(count, running.iter().map(|record| record.name.as_str()).collect::<Vec<_>>().join(", "))),
    }
}

pub fn running() -> Result<Vec<Record>, Error> {
    let mut running = Vec::new();
    for name in names()? {
        if let Ok(Some(record)) = read(&name)
            && is_running(&record)
        {
            running.push(record);
        }
    }
    Ok(running)
}

/// Ends whatever is left of a lab, killed or not: its processes, then its folder. Returns how many processes there were.
pub fn clear(name: &str) -> Result<usize, Error> {
    let folder = of(name);
    let killed = process::kill_marked(&mark(name)).map_err(at(&folder))?;
    if let Ok(Some(record)) = read(name) {
        net::wait_until_free(record.block);
    }
    match fs::remove_dir_all(&folder) {
        Ok(()) => Ok(killed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(killed),
        Err(error) => Err(at(&folder)(error)),
    }
}

/// [`clear`], and the lab's log too: nothing is left.
pub fn forget(name: &str) -> Result<(), Error> {
    clear(name)?;
    let log = log_of(name);
    match fs::remove_file(&log) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(at(&log)(error)),
    }
}

/// A block that no lab of this user and no other program uses. Labs of other users and homes look at the same time, so each
/// begins at a place of its own.
fn free_block(running: &[Record]) -> Result<Block, net::Error> {
    let all: Vec<u8> = BLOCKS.collect();
    let begin = std::process::id() as usize % all.len();
    all.iter()
        .cycle()
        .skip(begin)
        .take(all.len())
        .map(|number| Block(*number))
        .find(|block| !running.iter().any(|record| record.block == *block) && net::check_block(*block).is_ok())
        .ok_or(net::Error::NoneLeft)
}

/// Prepares an empty folder and a block for a new lab. What crashed labs left behind is cleared first, this one's and the others'.
pub fn reserve(name: &str, shape: &str, wanted: Option<Block>) -> Result<Record, Error> {
    check_name(name)?;
    if of(name).join("egress.sock").as_os_str().len() >= SOCKET_PATH {
        return Err(Error::TooLong(of(name)));
    }
    let _lock = lock()?;
    let running = running()?;
    if running.iter().any(|record| record.name == name) {
        return Err(Error::Running(name.to_owned()));
    }
    for left in names()? {
        if left == name {
            clear(&left)?;
        } else if !running.iter().any(|record| record.name == left) {
            forget(&left)?;
        }
    }
    let block = match wanted {
        Some(block) => {
            net::check_block(block)?;
            block
        }
        None => free_block(&running)?,
    };
    let folder = of(name);
    fs::create_dir_all(folder.join("logs")).map_err(at(&folder))?;
    let record = Record {
        name: name.to_owned(),
        shape: shape.to_owned(),
        block,
        supervisor: std::process::id(),
        vcenters: Vec::new(),
        boot_seconds: None,
    };
    write(&record)?;
    Ok(record)
}
