//! What the real readers make of a text, in a form in which INI and YAML can be compared.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use vmi_intent::cloud_config::{NewVcenter, REGION_CATEGORY, ZONE_CATEGORY};

/// The cloud controller manager's view, or its words of refusal.
pub fn seen(text: &str) -> Result<Value, String> {
    seen_by("cloud-controller-manager", text)
}

/// The view of the Machine API and the problem detector, who share a reader.
pub fn seen_by_others(text: &str) -> Result<Value, String> {
    seen_by("machine-api", text)
}

fn seen_by(reader: &str, text: &str) -> Result<Value, String> {
    let program = std::env::var_os("VMI_LOADER")
        .expect("VMI_LOADER is not set: hack/test sets it to the loader that `cargo run -p vmi-lab -- tools --print loader` prints");
    // VSPHERE_* variables of the machine would change what it sees.
    let mut child = Command::new(program)
        .args(["-reader", reader])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the loader starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("the loader reads");
    let output = child.wait_with_output().expect("the loader ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Ok(comparable(serde_json::from_slice(&output.stdout).expect("JSON"))),
        Some(1) => Err(said),
        code => panic!("the loader ended with {code:?}: {said}"),
    }
}

/// INI keeps blanks behind commas that YAML never had; they mean nothing to the reader of these lists.
fn comparable(mut seen: Value) -> Value {
    let vcenters = seen["VirtualCenter"].as_object_mut().expect("vCenters");
    for vcenter in vcenters.values_mut() {
        vcenter["Datacenters"] = names(&vcenter["Datacenters"]);
        let families = vcenter["IPFamilyPriority"].as_array().expect("families");
        vcenter["IPFamilyPriority"] = families.iter().map(|family| family.as_str().expect("text").trim()).collect();
    }
    seen["Global"]["Datacenters"] = names(&seen["Global"]["Datacenters"]);
    seen
}

fn names(joined: &Value) -> Value {
    joined.as_str().expect("text").split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

/// The old view plus the target, as the loader's rules of inheritance have it.
pub fn with_target(before: &Value, new: &NewVcenter, families: &[&str], zones: bool) -> Value {
    let mut wanted = before.clone();
    let global = &before["Global"];
    let inherited = |own: &Option<String>, key: &str| own.as_ref().map_or_else(|| global[key].clone(), |own| json!(own));
    wanted["VirtualCenter"][&new.server] = json!({
        "User": "",
        "Password": "",
        "TenantRef": new.server,
        "VCenterIP": new.server,
        "VCenterPort": new.port.unwrap_or(443).to_string(),
        "InsecureFlag": new.insecure || global["InsecureFlag"] == true,
        "Datacenters": new.datacenters,
        "RoundTripperCount": global["RoundTripperCount"],
        "CAFile": inherited(&new.ca_file, "CAFile"),
        "Thumbprint": inherited(&new.thumbprint, "Thumbprint"),
        "SecretRef": "Global",
        "SecretName": "",
        "SecretNamespace": "",
        "IPFamilyPriority": families,
    });
    if zones {
        wanted["Labels"] = json!({"Zone": ZONE_CATEGORY, "Region": REGION_CATEGORY});
    }
    wanted
}

/// The view without a server, wherever it stood.
pub fn without(before: &Value, server: &str) -> Value {
    let mut wanted = before.clone();
    if wanted["Global"]["VCenterIP"] == server {
        wanted["Global"]["VCenterIP"] = json!("");
    }
    wanted["VirtualCenter"].as_object_mut().expect("vCenters").retain(|_, vcenter| vcenter["VCenterIP"] != server);
    wanted
}

pub fn servers(seen: &Value) -> Vec<String> {
    let vcenters = seen["VirtualCenter"].as_object().expect("vCenters");
    vcenters.values().map(|vcenter| vcenter["VCenterIP"].as_str().expect("text").to_owned()).collect()
}

/// Two targets as different as they can be: nothing said, everything said.
pub fn plain_target() -> NewVcenter {
    NewVcenter { server: "vc-target.example.com".to_owned(), datacenters: vec!["dc-t".to_owned()], ..NewVcenter::default() }
}

pub fn full_target() -> NewVcenter {
    NewVcenter {
        port: Some(8443),
        datacenters: ["/Folder/DC \"East\"", "no", "12", "Zürich: #1"].map(str::to_owned).to_vec(),
        insecure: true,
        ca_file: Some(r"C:\ca\target.pem".to_owned()),
        thumbprint: Some("AA:01:E5".to_owned()),
        ..plain_target()
    }
}
