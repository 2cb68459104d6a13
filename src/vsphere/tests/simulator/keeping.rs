//! Sessions that nobody uses: kept alive while somebody holds them, ended when nobody does.

use std::time::Duration;

use vsphere::Client;

use crate::vcsim::Vcsim;

/// How a REST session is used for nothing.
const REST_TOUCH: &str = "POST /rest/com/vmware/cis/session?~action=get";

/// A client whose sessions want to be used every twentieth of a second, and are idle after a tenth.
fn restless(sim: &Vcsim) -> Client {
    let mut settings = sim.settings();
    settings.deadlines.idle = Duration::from_millis(100);
    settings.deadlines.keep_alive = Duration::from_millis(50);
    Client::new(settings).unwrap()
}

#[tokio::test]
async fn idle_sessions_are_logged_out_and_those_in_use_are_both_kept_alive() {
    let sim = Vcsim::start();
    let client = restless(&sim);
    let held = client.keep_alive();
    client.tags().categories().await.unwrap();
    let (soap, rest) = (sim.count("CurrentTime"), sim.count(REST_TOUCH));
    // Kept alive by these calls alone.
    sim.counts("CurrentTime", soap + 3).await;
    sim.counts(REST_TOUCH, rest + 3).await;
    let open = sim.sessions();
    assert_eq!((open.soap, open.rest, open.logins), (1, 1, 2), "the same ones all the time");
    drop(held);
    sim.sessions_become(0, 0).await;
    let quiet = sim.count("CurrentTime");
    client.clock().await.unwrap();
    assert_eq!(sim.count("CurrentTime"), quiet + 1, "the client is usable after an idle logout");
    sim.sessions_become(0, 0).await;
    assert_eq!(sim.count("Login"), 2);
}

#[tokio::test]
async fn a_client_without_a_rest_session_does_not_make_one_to_keep_it_alive() {
    let sim = Vcsim::start();
    let client = restless(&sim);
    let held = client.keep_alive();
    client.clock().await.unwrap();
    sim.counts("CurrentTime", 4).await;
    assert_eq!((sim.sessions().rest, sim.count(REST_TOUCH)), (0, 0));
    drop(held);
    sim.sessions_become(0, 0).await;
}

#[tokio::test]
async fn calls_in_one_session_do_not_let_the_other_be_forgotten() {
    let sim = Vcsim::start();
    let client = restless(&sim);
    let held = client.keep_alive();
    client.tags().categories().await.unwrap();
    let busy = async {
        loop {
            client.clock().await.unwrap();
        }
    };
    // The other session is not used but by the keeper.
    tokio::select! { () = busy => {}, () = sim.counts(REST_TOUCH, 3) => {} }
    let busy = async {
        loop {
            client.tags().category_ids().await.unwrap();
        }
    };
    let clocks = sim.count("CurrentTime");
    tokio::select! { () = busy => {}, () = sim.counts("CurrentTime", clocks + 3) => {} }
    drop(held);
    sim.sessions_become(0, 0).await;
}

#[tokio::test]
async fn the_last_clone_takes_its_sessions_with_it() {
    let sim = Vcsim::start();
    let client = sim.client();
    let clone = client.clone();
    client.tags().categories().await.unwrap();
    drop(client);
    clone.clock().await.unwrap();
    assert_eq!(sim.sessions().soap, 1, "a clone still lives");
    drop(clone);
    sim.sessions_become(0, 0).await;
}
