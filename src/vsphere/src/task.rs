//! Waiting for tasks.

use std::time::{Duration, Instant};

use crate::{
    client::Client,
    error::{Fault, Result, Trouble},
    reference::Ref,
    settings::from_now,
    soap::properties::{Object, Value, objects, specification},
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How far a task is; told by [`Client::wait`], which has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Whether it has begun.
    pub running: bool,
    /// Per cent, where the server tells.
    pub percent: Option<u8>,
}

pub(crate) enum State {
    Under(Progress),
    Done(Option<Ref>),
    Failed(Trouble),
}

impl Client {
    /// The tasks of late, of whatever user, as far as this one may know of them.
    ///
    /// # Errors
    /// [`Fault::NoPermission`] where the user may not list them at all.
    pub async fn recent_tasks(&self) -> Result<Vec<Ref>> {
        const PROPERTY: &str = "recentTask";
        let missing =
            |manager: Option<Ref>| self.core().error("TaskManager", manager.as_ref(), Fault::NotFound { object: manager.clone() });
        let manager = self.core().soap_session().await?.content.task_manager.clone().ok_or_else(|| missing(None))?;
        let arguments = specification(&[("TaskManager", &[PROPERTY])], &objects([&manager]));
        let mut found = None;
        self.core()
            .retrieve(&arguments, |mut objects, _| {
                found = objects.pop();
                true
            })
            .await?;
        let mut object = found.ok_or_else(|| missing(Some(manager.clone())))?;
        match object.missing.pop() {
            Some((_, fault)) => Err(self.core().error("TaskManager", Some(&manager), fault)),
            None => Ok(object.objects(PROPERTY)),
        }
    }

    /// Waits until a task has ended and returns what it made, where it made something. `report` is told the progress
    /// whenever it was asked for.
    ///
    /// The task is asked about in growing steps up to a second, not watched: a watch dies with its session, this does not.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulator/documentation.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulated = vcsim::Vcsim::start();
    /// # simulated.fault(&serde_json::json!({ "kind": "task", "method": "Destroy_Task", "milliseconds": 1000 }));
    /// # let client = simulated.client();
    /// use std::time::Duration;
    /// use vsphere::Progress;
    /// # let folder = client.find_by_path("/dc-a/vm/lab-x7k2p").await?.ok_or("it is there")?;
    /// # client.delete_folder(&folder, Duration::ZERO).await.unwrap_err();
    /// for task in client.recent_tasks().await? {
    ///     let show = |Progress { running, percent }| println!("{task}: running {running}, {} %", percent.unwrap_or(0));
    ///     let made = client.wait(&task, Duration::from_secs(60), show).await?;
    ///     println!("{task} is done and made {made:?}");
    /// }
    /// # assert_eq!(client.find_by_path("/dc-a/vm/lab-x7k2p").await?, None);
    /// # client.logout().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The task's own fault; [`Fault::Timeout`] after the deadline, with the task still running on the server.
    pub async fn wait(&self, task: &Ref, deadline: Duration, mut report: impl FnMut(Progress)) -> Result<Option<Ref>> {
        let arguments = specification(&[("Task", &["info.state", "info.progress", "info.error", "info.result"])], &objects([task]));
        let until = from_now(deadline);
        let mut pause = FIRST_PAUSE;
        loop {
            let mut found = None;
            self.core()
                .retrieve(&arguments, |mut objects, _| {
                    found = objects.pop();
                    true
                })
                .await?;
            let Some(object) = found else {
                return Err(self.core().error("Task", Some(task), Fault::NotFound { object: Some(task.clone()) }));
            };
            match state(object).map_err(|fault| self.core().error("Task", Some(task), fault))? {
                State::Done(made) => return Ok(made),
                State::Failed(trouble) => return Err(self.core().error("Task", Some(task), trouble)),
                State::Under(progress) => report(progress),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.core().error("Task", Some(task), Fault::Timeout { after: deadline }));
            }
            // A wait for updates would hold one of the few requests in flight, and outlive a lost session, for as long as the task.
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// A task that does not tell its state is an error at once: waiting for it would end with a false reason.
pub(crate) fn state(mut object: Object) -> Result<State, Fault> {
    let Some(state) = object.text("info.state") else {
        let unread = object.missing.into_iter().find(|(path, _)| path.starts_with("info")).map(|(_, fault)| fault);
        return Err(unread.unwrap_or_else(|| Fault::Malformed("the task does not tell its state".into())));
    };
    Ok(match state.as_str() {
        "success" => State::Done(object.object("info.result")),
        "error" => State::Failed(match object.take("info.error") {
            Some(Value::Fault(trouble)) => *trouble,
            _ => Fault::Other { kind: "TaskFailed".into() }.into(),
        }),
        other => State::Under(Progress { running: other == "running", percent: object.number("info.progress") }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soap::properties::Page;

    #[test]
    fn a_task_that_cannot_be_read_is_told_and_not_waited_for() {
        let task = |missing| Object { reference: Ref::new("Task", "task-1"), properties: Vec::new(), missing };
        let denied = Fault::NoPermission { privilege: "System.Read".into(), object: None };
        assert_eq!(state(task(vec![("info.state".into(), denied.clone())])).err(), Some(denied));
        assert!(matches!(state(task(Vec::new())), Err(Fault::Malformed(_))));
    }

    #[test]
    fn a_task_is_under_way_done_or_failed_as_it_says() {
        let read = |page: &[u8]| state(Page::parse(page).unwrap().objects.pop().unwrap()).unwrap();
        let running = read(include_bytes!("../corpus/task_state/running.xml"));
        assert!(matches!(running, State::Under(Progress { running: true, percent: Some(42) })));
        let State::Done(made) = read(include_bytes!("../corpus/task_state/success.xml")) else { panic!("it says success") };
        assert_eq!(made, Some(Ref::new("VirtualMachine", "vm-80")));
        let State::Failed(trouble) = read(include_bytes!("../corpus/task_state/error.xml")) else { panic!("it says error") };
        assert_eq!((trouble.fault.name(), trouble.words.as_str()), ("DuplicateName", "The name is taken."));
    }
}
