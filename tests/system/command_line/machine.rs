//! What a lab says of a machine that it cannot run on: addresses in use, programs that die at start, a full disk.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use vmi_lab::net::{self, BLOCKS, Block};
use vmi_lab::tools::{Progress, Tools};

use super::{Home, refused};
use crate::support::command::{self, vmi_lab_command};
use crate::support::suite::TestResult;

/// A block in which nobody listens.
fn free_block() -> TestResult<u8> {
    Ok(BLOCKS.rev().find(|number| net::check_block(Block(*number)).is_ok()).ok_or("no block is free")?)
}

pub async fn an_address_in_use_is_named() -> TestResult {
    let home = Home::new()?;
    let number = free_block()?;
    let block = format!("127.{number}");
    for place in ["0.1:6443", "1.1:443", "1.2:443"] {
        let address = format!("{block}.{place}");
        let _listener = match TcpListener::bind(&address) {
            Ok(listener) => listener,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                // This user's vCenters have a choice of ports.
                let _listener = TcpListener::bind(address.replace(":443", ":8443"))?;
                assert_eq!(net::vcenter_port(Block(number))?, 8444, "{address}");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        refused(&home.run(&["up", "plain", "--net", &block]).await?, &[&format!("{address} is in use"), "--net"]);
        assert!(home.processes()?.is_empty());
    }
    Ok(())
}

/// A folder for VMI_TOOLS with every program the lab runs, one of them replaced by a script.
async fn tools_with(folder: &Path, name: &str, script: &str) -> TestResult<PathBuf> {
    let tools = Tools::prepare(&mut Progress::stderr()).await?;
    for place in tools.places().iter().filter(|place| place.tool.name != name) {
        symlink(&place.path, folder.join(&place.tool.name))?;
    }
    let manifests = tools.manifests("4.21")?;
    symlink(manifests.parent().ok_or("the manifests are nowhere")?, folder.join("openshift-manifests"))?;
    let program = folder.join(name);
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(folder.to_owned())
}

pub async fn a_program_that_dies_at_start_is_shown_with_the_end_of_its_log() -> TestResult {
    let home = Home::new()?;
    let folder = tempfile::tempdir()?;
    let script = "#!/bin/sh\necho the certificate is in a bad mood >&2\nexit 3\n";
    let tools = tools_with(folder.path(), "kube-apiserver", script).await?;
    let output = command::run(vmi_lab_command(home.path())?.env("VMI_TOOLS", tools).args(["up", "plain"])).await?;
    refused(&output, &["kube-apiserver ended", "exit status: 3", "kube-apiserver.log", "the certificate is in a bad mood"]);
    // What had started before it is gone too.
    assert!(home.processes()?.is_empty());
    Ok(())
}

pub async fn a_program_that_dies_at_start_in_a_pod_is_shown_with_the_end_of_its_log() -> TestResult {
    let home = Home::new()?;
    let folder = tempfile::tempdir()?;
    let tools = tools_with(folder.path(), "machineset", "#!/bin/sh\necho no set is good enough for me >&2\nexit 3\n").await?;
    let output = command::run(vmi_lab_command(home.path())?.env("VMI_TOOLS", tools).args(["up", "native"])).await?;
    let pods = home.path().join("native/pods");
    let pod = "machineset-controller of pod openshift-machine-api/machine-api-controllers-";
    refused(&output, &[pod, "exit code 3", &pods.display().to_string(), "\n  no set is good enough for me"]);
    assert!(pods.is_dir(), "the log is not where it is said to be");
    assert!(home.processes()?.is_empty());
    Ok(())
}

pub async fn too_little_disk_is_said_before_anything_is_built() -> TestResult {
    let empty = tempfile::tempdir()?;
    // Nothing is ever free there.
    let full = Path::new("/proc/self");
    for verb in ["up", "rehearse"] {
        // Whoever asked for programs first would hear that there are none.
        let output = command::run(vmi_lab_command(full)?.env("VMI_TOOLS", empty.path()).args([verb, "plain"])).await?;
        refused(&output, &["a lab needs 500 MB on the disk of /proc/self and 0 MB are free", "VMI_LAB_HOME"]);
    }
    Ok(())
}
