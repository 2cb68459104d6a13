//! `up` and `down`.

use std::time::Instant;

use super::{Failure, kubeconfig};
use crate::supervisor::{self, Order, Running};
use crate::tools::{Progress, Tools, spoken};
use crate::{home, output, requirements};

pub async fn up(order: Order) -> Result<(), Failure> {
    let mut progress = Progress::stderr();
    requirements::check(&home::folder())?;
    // Built here, not by the lab's own process, so that the one who waits sees how far it is.
    Tools::prepare(&mut progress).await?;
    let began = Instant::now();
    let running = Running::start(&order, false, |text| progress.line(&format!("{:>6}  {text}", spoken(began.elapsed())))).await?;
    let record = running.leave();
    output::line(format_args!("lab {} is up after {:.1} s", record.name, record.boot_seconds.unwrap_or_default()));
    output::line("");
    output::line(format_args!("  kubeconfig  {}", kubeconfig(&record).display()));
    for vcenter in &record.vcenters {
        output::line(format_args!("  vCenter {}   https://{}:{}  user {}", vcenter.name, vcenter.server, vcenter.port, vcenter.username));
    }
    output::line("");
    output::line(format_args!("next:"));
    let (objects, component) = match record.vcenters.is_empty() {
        true => ("nodes", "kube-apiserver"),
        false => ("nodes,machines -A", "cloud-controller-manager"),
    };
    for verb in [&format!("kubectl get {objects}"), "status", &format!("logs {component}"), "down"] {
        output::line(format_args!("  vmi-lab {verb}"));
    }
    Ok(())
}

pub async fn down(name: Option<&str>, all: bool) -> Result<(), Failure> {
    let _lock = home::lock()?;
    let names = match (name, all) {
        (Some(name), _) => {
            home::check_name(name)?;
            vec![name.to_owned()]
        }
        (None, true) => home::names()?,
        (None, false) => {
            let names = home::names()?;
            match names.len() {
                0 => return Err(home::Error::NoneRunning.into()),
                1 => names,
                count => return Err(home::Error::Ambiguous(count, names.join(", ")).into()),
            }
        }
    };
    for name in names {
        if !home::of(&name).exists() {
            return Err(home::Error::NoSuchLab(name).into());
        }
        match home::read(&name) {
            Ok(Some(record)) if home::is_running(&record) => supervisor::end(&record).await?,
            // Crashed, or its record is unreadable: whatever still carries its mark goes.
            _ => home::forget(&name)?,
        }
        output::line(format_args!("lab {name} is gone"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_too_little_left_ends_the_command_with_2() {
        let disk = requirements::Error::Disk { folder: "/labs".into(), available: 20 };
        for error in [requirements::Error::Memory { available: 900 }, disk] {
            let message = error.to_string();
            let failure = Failure::from(error);
            assert_eq!((failure.code, failure.message), (2, message));
        }
    }
}
