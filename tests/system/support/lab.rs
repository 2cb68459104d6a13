//! A running lab, as tests see it.

use std::path::PathBuf;

use kube::Client;
use vmi_lab::cache::Cache;
use vmi_lab::home::{self, Record, VcenterRecord};
use vmi_lab::kubernetes::Kind;
use vmi_lab::shape::Shape;
use vmi_lab::supervisor::{Order, Running};
use vmi_lab::tools::{Progress, Tools};
use vmi_lab::vcenter::Control;

use crate::support::command::{self, Output};
use crate::support::suite::TestResult;

pub struct Lab {
    pub shape: Shape,
    pub record: Record,
    pub client: Client,
    /// The vCenter simulator's control socket.
    pub control: Control,
    pub kubectl: PathBuf,
    running: Running,
}

fn quiet(_progress: &str) {}

impl Lab {
    /// Boots a lab that ends with this process.
    pub async fn start(shape: &str, name: &str) -> TestResult<Lab> {
        let order = Order { shape: shape.to_owned(), name: name.to_owned(), block: None };
        let running = Running::start(&order, true, quiet).await?;
        let record = running.record.clone();
        let folder = home::of(name);
        let client = vmi_lab::control_plane::client(&folder.join("kubeconfig")).await?;
        let kubectl = Tools::prepare_one("kubectl", &mut Progress::stderr()).await?;
        let control = Control { socket: folder.join("vcsim.sock") };
        Ok(Lab { shape: Shape::named(shape)?, record, client, control, kubectl, running })
    }

    /// How its apiserver is reached as an administrator.
    pub async fn config(&self) -> TestResult<kube::Config> {
        let file = kube::config::Kubeconfig::read_from(self.folder().join("kubeconfig"))?;
        let mut config = kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await?;
        // On a loopback address, which no proxy knows.
        config.proxy_url = None;
        Ok(config)
    }

    pub async fn stop(self) -> TestResult {
        Ok(self.running.stop().await?)
    }

    pub fn folder(&self) -> PathBuf {
        home::of(&self.record.name)
    }

    /// The vCenter called so in the shape.
    pub fn vcenter(&self, name: &str) -> &VcenterRecord {
        self.record.vcenters.iter().find(|vcenter| vcenter.name == name).expect("the shape has that vCenter")
    }

    /// Live copies of these kinds, in all namespaces.
    pub async fn watch(&self, kinds: &[Kind]) -> Cache {
        let wanted: Vec<(Kind, &str)> = kinds.iter().map(|kind| (*kind, "")).collect();
        Cache::start(&self.client, &wanted).await
    }

    pub async fn kubectl(&self, arguments: &[&str]) -> TestResult<Output> {
        command::run(self.kubectl_command().args(arguments)).await
    }

    /// kubectl against this lab, to be given arguments.
    pub fn kubectl_command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.kubectl);
        command.env("KUBECONFIG", self.folder().join("kubeconfig")).kill_on_drop(true);
        command
    }

    /// Fails unless the lab is as healthy as it was after its boot.
    pub async fn settled(&self) -> TestResult {
        Ok(vmi_lab::health::wait(&self.client, &self.shape).await?)
    }
}
