//! The cache outside the checkout, shared by all checkouts of a user: a folder per thing and key.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::{At as _, Error};
use super::progress::Progress;

/// What nobody used for this long goes when something newer of its name comes.
const KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// How the folders begin in which things are made.
const WORKSHOP: &str = ".workshop-";

pub struct Store(PathBuf);

/// The right to add to the store; one builder at a time has it.
pub struct Adding {
    store: PathBuf,
    _lock: File,
}

impl Store {
    pub fn open(folder: &Path) -> Result<Store, Error> {
        let folder = folder.join("tools");
        fs::create_dir_all(&folder).at(&folder)?;
        Ok(Store(folder))
    }

    fn folder(&self, name: &str, key: &str) -> PathBuf {
        self.0.join(format!("{name}-{key}"))
    }

    /// The folder of a thing if it is there, noting that it is still of use.
    pub fn find(&self, name: &str, key: &str) -> Option<PathBuf> {
        let folder = self.folder(name, key);
        let handle = File::open(&folder).ok()?;
        // A cache that somebody else filled may be read-only for us: then it is not ours to tidy either.
        let _ = handle.set_modified(SystemTime::now());
        Some(folder)
    }

    /// Waits for whoever is adding at the moment.
    pub async fn add(&self, progress: &mut Progress) -> Result<Adding, Error> {
        let path = self.0.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path).at(&path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(source)) => return Err(Error::File { path, source }),
            Err(TryLockError::WouldBlock) => {
                progress.line("another process is building the same programs: waiting for it");
                let waiting = lock.try_clone().at(&path)?;
                let waited = tokio::task::spawn_blocking(move || waiting.lock()).await;
                waited.map_err(|error| Error::content(&path, error.to_string()))?.at(&path)?;
            }
        }
        let adding = Adding { store: self.0.clone(), _lock: lock };
        // What an interrupted builder left: nobody else works in there while we hold the lock.
        for entry in fs::read_dir(&self.0).at(&self.0)? {
            let entry = entry.at(&self.0)?;
            if entry.file_name().to_string_lossy().starts_with(WORKSHOP) {
                remove(&entry.path())?;
            }
        }
        fs::create_dir_all(adding.workshop()).at(&adding.workshop())?;
        Ok(adding)
    }
}

impl Adding {
    /// Where things are made before they are put into the store. Nobody else's: the go of a killed builder may still be at work.
    pub fn workshop(&self) -> PathBuf {
        self.store.join(format!("{WORKSHOP}{}", std::process::id()))
    }

    /// Puts the folder `made` into the store in one step, and tidies away what it follows.
    pub fn put(&self, made: &Path, name: &str, key: &str) -> Result<(), Error> {
        let target = self.store.join(format!("{name}-{key}"));
        remove(&target)?;
        fs::rename(made, &target).at(&target)?;
        for entry in fs::read_dir(&self.store).at(&self.store)? {
            let entry = entry.at(&self.store)?;
            let of_this_name = entry.file_name().to_string_lossy().rsplit_once('-').is_some_and(|(before, _)| before == name);
            let used = entry.metadata().and_then(|metadata| metadata.modified()).at(&entry.path())?;
            if of_this_name && used.elapsed().is_ok_and(|unused| unused > KEPT) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for Adding {
    fn drop(&mut self) {
        // The next builder removes what could not be removed here.
        let _ = remove(&self.workshop());
    }
}

fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at(folder),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::progress::tests::Told;
    use super::*;

    async fn put(store: &Store, name: &str, key: &str) {
        let adding = store.add(&mut Progress::to(Told::default(), false)).await.unwrap();
        let made = adding.workshop().join("made");
        fs::create_dir(&made).unwrap();
        adding.put(&made, name, key).unwrap();
    }

    fn unused_for(folder: &Path, time: Duration) {
        File::open(folder).unwrap().set_modified(SystemTime::now() - time).unwrap();
    }

    #[tokio::test]
    async fn only_what_nobody_used_for_long_gives_way_to_the_new() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::open(cache.path()).unwrap();
        for (name, key) in [("etcd", "old"), ("etcd", "recent"), ("kubectl", "old")] {
            put(&store, name, key).await;
        }
        unused_for(&store.folder("etcd", "old"), KEPT * 2);
        unused_for(&store.folder("etcd", "recent"), KEPT / 2);
        unused_for(&store.folder("kubectl", "old"), KEPT * 2);
        put(&store, "etcd", "new").await;
        assert_eq!(store.find("etcd", "old"), None);
        for (name, key) in [("etcd", "recent"), ("etcd", "new"), ("kubectl", "old")] {
            assert!(store.find(name, key).is_some(), "{name} {key}");
        }
    }

    #[tokio::test]
    async fn what_is_used_stays() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::open(cache.path()).unwrap();
        put(&store, "etcd", "old").await;
        unused_for(&store.folder("etcd", "old"), KEPT * 2);
        store.find("etcd", "old").unwrap();
        put(&store, "etcd", "new").await;
        assert!(store.find("etcd", "old").is_some());
    }

    #[tokio::test]
    async fn a_second_builder_waits_for_the_first_and_says_so() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::open(cache.path()).unwrap();
        let first = store.add(&mut Progress::to(Told::default(), false)).await.unwrap();
        let told = Told::default();
        let mut progress = Progress::to(told.clone(), false);
        let second = store.add(&mut progress);
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(told.text(), "another process is building the same programs: waiting for it\n");
        drop(first);
        second.await.unwrap();
    }

    #[tokio::test]
    async fn an_interrupted_build_leaves_nothing_for_the_next() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::open(cache.path()).unwrap();
        let left = cache.path().join("tools/.workshop-1/half");
        fs::create_dir_all(&left).unwrap();
        let adding = store.add(&mut Progress::to(Told::default(), false)).await.unwrap();
        assert!(!left.exists());
        let workshop = adding.workshop();
        drop(adding);
        assert!(!workshop.exists());
    }
}
