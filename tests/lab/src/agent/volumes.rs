//! A pod's volumes as directories. Nothing can be mounted without root, so processes learn the directory from
//! `LAB_VOLUME_<NAME>`; what comes from secrets and config maps is kept fresh while the pod runs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume};

use super::environment::{Objects, entries, field, missing};
use crate::kubernetes::{CONFIG_MAP, Kind, SECRET};

const DEFAULT_MODE: i32 = 0o644;

/// The files of one volume, by path within it.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<String, (Vec<u8>, i32)>);

/// A token that a projected volume wants beside its files.
pub(super) struct WantedToken {
    pub path: PathBuf,
    pub audience: Option<String>,
    pub seconds: Option<i64>,
}

/// Where a volume is found on this machine.
pub(super) fn directory(volume: &Volume, folder: &Path) -> PathBuf {
    match &volume.host_path {
        Some(host) => PathBuf::from(&host.path),
        None => folder.join("volumes").join(&volume.name),
    }
}

/// What the volume's directory has to contain. An error is the sentence a kubelet would put into its FailedMount event.
pub(super) fn wanted(pod: &Pod, volume: &Volume, objects: Objects<'_>, address: IpAddr) -> Result<Files, String> {
    let mut files = Files::default();
    if volume.empty_dir.is_some() || volume.host_path.is_some() {
        return Ok(files);
    }
    let collector = &mut Collector { pod, objects, address, files: &mut files };
    let outcome = if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        collector.object(SECRET, name, secret.items.as_deref(), secret.optional, secret.default_mode)
    } else if let Some(map) = &volume.config_map {
        collector.object(CONFIG_MAP, &map.name, map.items.as_deref(), map.optional, map.default_mode)
    } else if let Some(downward) = &volume.downward_api {
        collector.downward(downward.items.as_deref(), downward.default_mode)
    } else if let Some(projected) = &volume.projected {
        let mode = projected.default_mode;
        projected.sources.iter().flatten().try_for_each(|source| {
            if let Some(secret) = &source.secret {
                collector.object(SECRET, &secret.name, secret.items.as_deref(), secret.optional, mode)
            } else if let Some(map) = &source.config_map {
                collector.object(CONFIG_MAP, &map.name, map.items.as_deref(), map.optional, mode)
            } else if let Some(downward) = &source.downward_api {
                collector.downward(downward.items.as_deref(), mode)
            } else if source.service_account_token.is_some() {
                Ok(())
            } else {
                Err("the lab's node agent projects secrets, config maps, tokens and the downward API only".to_owned())
            }
        })
    } else {
        Err("the lab's node agent has secret, configMap, emptyDir, projected, downwardAPI and hostPath volumes only".to_owned())
    };
    outcome.map_err(|reason| format!("MountVolume.SetUp failed for volume {:?} : {reason}", volume.name))?;
    Ok(files)
}

/// The service account tokens that the volume projects.
pub(super) fn tokens(volume: &Volume, directory: &Path) -> Vec<WantedToken> {
    let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    sources
        .filter_map(|source| source.service_account_token.as_ref())
        .map(|token| WantedToken { path: directory.join(&token.path), audience: token.audience.clone(), seconds: token.expiration_seconds })
        .collect()
}

struct Collector<'a> {
    pod: &'a Pod,
    objects: Objects<'a>,
    address: IpAddr,
    files: &'a mut Files,
}

impl Collector<'_> {
    fn object(
        &mut self,
        kind: Kind,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
        mode: Option<i32>,
    ) -> Result<(), String> {
        let Some(object) = (self.objects)(kind, name) else {
            return if optional == Some(true) { Ok(()) } else { Err(missing(kind, name)) };
        };
        let mode = mode.unwrap_or(DEFAULT_MODE);
        let mut entries = entries(kind, &object);
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            self.files.0.extend(entries.into_iter().map(|(key, bytes)| (key, (bytes, mode))));
            return Ok(());
        };
        for item in items {
            match entries.remove(&item.key) {
                Some(bytes) => {
                    self.files.0.insert(item.path.clone(), (bytes, item.mode.unwrap_or(mode)));
                }
                None if optional == Some(true) => {}
                None => return Err(format!("{} {name:?} has no key {:?}", kind.kind.to_lowercase(), item.key)),
            }
        }
        Ok(())
    }

    fn downward(&mut self, items: Option<&[DownwardAPIVolumeFile]>, mode: Option<i32>) -> Result<(), String> {
        for item in items.into_iter().flatten() {
            let Some(from) = &item.field_ref else {
                return Err(format!("the lab's node agent cannot give resources in {:?}, only the pod's fields", item.path));
            };
            let bytes = field(self.pod, &from.field_path, self.address)?.into_bytes();
            self.files.0.insert(item.path.clone(), (bytes, item.mode.or(mode).unwrap_or(DEFAULT_MODE)));
        }
        Ok(())
    }
}

/// Brings `directory` from what was `written` to what is `wanted`. Each file is replaced whole: a reader sees old or new.
pub(super) fn write(directory: &Path, wanted: Files, written: &mut Files) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (path, content) in &wanted.0 {
        if written.0.get(path) != Some(content) {
            write_file(&directory.join(path), &content.0, content.1)?;
        }
    }
    for path in written.0.keys().filter(|path| !wanted.0.contains_key(*path)) {
        fs::remove_file(directory.join(path))?;
    }
    *written = wanted;
    Ok(())
}

/// Writes a file beside its place and moves it there.
pub(super) fn write_file(path: &Path, bytes: &[u8], mode: i32) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a volume's file needs a name"));
    };
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!("..{}.new", name.to_string_lossy()));
    fs::write(&beside, bytes)?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(u32::try_from(mode).unwrap_or(0o644)))?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::DynamicObject;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn files(volume: Value, data: Option<&Value>) -> Result<BTreeMap<String, String>, String> {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n"}})).unwrap();
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let objects = |_: Kind, name: &str| -> Option<Arc<DynamicObject>> {
            let object = json!({"metadata": {"name": name}, "data": data?});
            Some(Arc::new(serde_json::from_value(object).unwrap()))
        };
        let files = wanted(&pod, &volume, &objects, "127.1.0.1".parse().unwrap())?;
        Ok(files.0.into_iter().map(|(path, (bytes, _))| (path, String::from_utf8(bytes).unwrap())).collect())
    }

    #[test]
    fn a_projected_volume_joins_its_sources() {
        let volume = json!({"name": "v", "projected": {"sources": [
            {"configMap": {"name": "ca", "items": [{"key": "ca.crt", "path": "certs/ca.crt"}]}},
            {"serviceAccountToken": {"path": "token"}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]}});
        let files = files(volume, Some(&json!({"ca.crt": "PEM", "other": "x"}))).unwrap();
        assert_eq!(files, BTreeMap::from([("certs/ca.crt".into(), "PEM".into()), ("namespace".into(), "n".into())]));
    }

    #[test]
    fn a_missing_secret_is_reported_as_a_kubelet_does_unless_it_is_optional() {
        let error = files(json!({"name": "v", "secret": {"secretName": "certs"}}), None).unwrap_err();
        assert_eq!(error, "MountVolume.SetUp failed for volume \"v\" : secret \"certs\" not found");
        assert!(files(json!({"name": "v", "secret": {"secretName": "certs", "optional": true}}), None).unwrap().is_empty());
    }

    #[test]
    fn a_volume_of_an_unknown_kind_is_refused_and_never_left_empty() {
        let error = files(json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}), None).unwrap_err();
        assert!(error.contains("volume \"v\"") && error.contains("hostPath volumes only"), "{error}");
    }

    #[test]
    fn a_refresh_replaces_adds_and_removes_files() {
        let folder = tempfile::tempdir().unwrap();
        let of = |entries: &[(&str, &str)]| {
            Files(entries.iter().map(|(path, text)| ((*path).to_owned(), (text.as_bytes().to_vec(), 0o600))).collect())
        };
        let mut written = Files::default();
        write(folder.path(), of(&[("a", "1"), ("sub/b", "2")]), &mut written).unwrap();
        write(folder.path(), of(&[("a", "9"), ("c", "3")]), &mut written).unwrap();
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).ok();
        assert_eq!((read("a"), read("sub/b"), read("c")), (Some("9".into()), None, Some("3".into())));
        let mode = fs::metadata(folder.path().join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
