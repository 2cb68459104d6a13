//! Sessions: shared, replaced when lost, ended at the end, never leaked.

use std::time::Duration;

use serde_json::json;
use vsphere::{Client, Credentials, Fault, Pool, Trust, Want};

use crate::vcsim::{PASSWORD, USER, Vcsim};

#[tokio::test]
async fn many_callers_share_one_session_and_logout_leaves_none() {
    let sim = Vcsim::start();
    let client = sim.client();
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { (client.clock().await.unwrap(), client.tags().categories().await.unwrap()) })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let open = sim.sessions();
    assert_eq!((open.soap, open.rest), (1, 1), "one of each, however many callers");
    assert_eq!(sim.count("Login"), 1);
    client.logout().await.unwrap();
    let ended = sim.sessions();
    assert_eq!((ended.soap, ended.rest), (0, 0));
    client.clock().await.unwrap();
    assert_eq!(sim.sessions().soap, 1, "a client stays usable after its logout");
    client.logout().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn no_rest_session_is_made_before_it_is_needed() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.inventory(Want::Infrastructure).await.unwrap();
    let open = sim.sessions();
    assert_eq!((open.soap, open.rest), (1, 0));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn the_first_rest_session_asks_for_nothing_else() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.inventory(Want::Infrastructure).await.unwrap();
    let before = sim.count("CurrentTime");
    client.tags().category_ids().await.unwrap();
    assert_eq!(sim.count("CurrentTime"), before);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_refused_password_is_sent_once_however_many_ask_and_however_often() {
    let sim = Vcsim::start();
    let mut settings = sim.settings();
    settings.credentials = Credentials::new(USER, "wrong-password");
    let client = Client::new(settings).unwrap();
    let callers: Vec<_> = (0..8)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                if number % 2 == 0 { client.clock().await.map(|_| ()) } else { client.tags().categories().await.map(|_| ()) }
            })
        })
        .collect();
    for caller in callers {
        let error = caller.await.unwrap().unwrap_err();
        assert_eq!(*error.fault(), Fault::InvalidLogin);
        assert_eq!(error.words(), "Cannot complete login due to an incorrect user name or password.");
        assert!(error.to_string().contains("not sent again until it changes"), "{error}");
    }
    client.set_credentials(Credentials::new(USER, "wrong-password")).await.unwrap();
    assert_eq!(*client.clock().await.unwrap_err().fault(), Fault::InvalidLogin, "equal credentials stay refused");
    assert_eq!(sim.sessions().refused, 1);
    assert_eq!(sim.count("POST /rest/com/vmware/cis/session"), 0, "REST is not tried with a password SOAP refused");
    client.set_credentials(Credentials::new(USER, PASSWORD)).await.unwrap();
    client.clock().await.unwrap();
    assert_eq!(sim.sessions().refused, 1);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_password_that_only_rest_refuses_is_not_sent_there_again_either() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.clock().await.unwrap();
    let login = "POST /rest/com/vmware/cis/session";
    sim.fault(&json!({ "kind": "status", "code": 401, "method": login }));
    for _ in 0..3 {
        assert_eq!(*client.tags().categories().await.unwrap_err().fault(), Fault::InvalidLogin);
    }
    assert_eq!(sim.count(login), 1);
    client.logout().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn a_pool_shares_sessions_remembers_refusals_and_follows_new_credentials() {
    let sim = Vcsim::start();
    let pool = Pool::new();
    let with = |password: &str| {
        let mut settings = sim.settings();
        settings.credentials = Credentials::new(USER, password);
        settings
    };
    for _ in 0..3 {
        let client = pool.client(with("wrong-password")).await.unwrap();
        assert_eq!(*client.clock().await.unwrap_err().fault(), Fault::InvalidLogin);
    }
    assert_eq!(sim.sessions().refused, 1, "also a later caller does not try it again");
    for _ in 0..3 {
        pool.client(with(PASSWORD)).await.unwrap().tags().categories().await.unwrap();
    }
    assert_eq!((sim.sessions().soap, sim.sessions().rest, sim.count("Login")), (1, 1, 2));
    sim.fault(&json!({ "kind": "password", "password": "rotated-password" }));
    pool.client(with("rotated-password")).await.unwrap().clock().await.unwrap();
    let open = sim.sessions();
    assert_eq!((open.soap, open.rest, open.refused), (1, 0, 1), "the sessions of the old credentials are ended");
    pool.close().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn two_secrets_that_alternate_do_not_make_a_refused_password_come_back() {
    let sim = Vcsim::start();
    let pool = Pool::new();
    let mut settings = sim.settings();
    for round in 0..4 {
        for (password, right) in [(PASSWORD, true), ("wrong-password", false), ("another-wrong-one", false)] {
            settings.credentials = Credentials::new(USER, password);
            if round == 2 {
                // Another way there makes another client, which knows what the first one learnt.
                settings.trust = Trust::Insecure;
            }
            let outcome = pool.client(settings.clone()).await.unwrap().clock().await;
            assert_eq!(outcome.map_err(|error| error.fault().clone()).err(), (!right).then_some(Fault::InvalidLogin));
        }
    }
    assert_eq!(sim.sessions().refused, 2, "each wrong password once");
    pool.close().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn a_refused_password_stays_refused_when_it_comes_back_and_for_every_client_of_the_same_settings() {
    let sim = Vcsim::start();
    let mut settings = sim.settings();
    settings.credentials = Credentials::new(USER, "wrong-password");
    let client = Client::new(settings.clone()).unwrap();
    for _ in 0..2 {
        client.set_credentials(Credentials::new(USER, "wrong-password")).await.unwrap();
        assert_eq!(*client.clock().await.unwrap_err().fault(), Fault::InvalidLogin);
        client.set_credentials(Credentials::new(USER, PASSWORD)).await.unwrap();
        client.clock().await.unwrap();
    }
    assert_eq!(*Client::new(settings).unwrap().clock().await.unwrap_err().fault(), Fault::InvalidLogin);
    assert_eq!(sim.sessions().refused, 1);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_refused_password_is_known_to_all_clients_of_the_process_and_held_against_that_vcenter_alone() {
    let sim = Vcsim::with(&["a", "b"], 0);
    let refused = |number: usize| {
        let mut settings = sim.settings_of(number);
        settings.credentials = Credentials::new(USER, "wrong-password");
        settings
    };
    let invalid = |outcome: vsphere::Result<vsphere::Clock>| assert_eq!(*outcome.unwrap_err().fault(), Fault::InvalidLogin);
    for _ in 0..2 {
        invalid(Client::new(refused(0)).unwrap().clock().await);
        invalid(Pool::new().client(refused(0)).await.unwrap().clock().await);
    }
    assert_eq!(sim.sessions().refused, 1);
    invalid(Client::new(refused(1)).unwrap().clock().await);
    assert_eq!(sim.control("GET", "/sessions", &serde_json::Value::Null)[1]["refusedLogins"], 1, "the other was not asked yet");
    assert_eq!(sim.sessions().refused, 1);
}

#[tokio::test]
async fn a_client_of_one_user_never_becomes_that_of_another() {
    let sim = Vcsim::start();
    let pool = Pool::new();
    let first = pool.client(sim.settings()).await.unwrap();
    first.clock().await.unwrap();
    let mut others = sim.settings();
    others.credentials = Credentials::new("somebody@vsphere.local", "wrong-password");
    let second = pool.client(others.clone()).await.unwrap();
    assert_eq!(*second.clock().await.unwrap_err().fault(), Fault::InvalidLogin);
    first.clock().await.unwrap();
    assert_eq!((sim.count("Login"), sim.count("Logout")), (2, 0), "the first keeps its session");
    let error = first.set_credentials(others.credentials).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Settings(words) if words.contains("make another client")), "{error}");
    first.clock().await.unwrap();
    pool.close().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn a_lost_session_is_replaced_once_in_both_its_forms_and_over_rest() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.tags().categories().await.unwrap();
    for (form, logins) in [("fault", 2), ("missingSet", 3), ("rest", 4)] {
        sim.fault(&json!({ "kind": "sessions" }));
        match form {
            "fault" => drop(client.clock().await.unwrap()),
            "missingSet" => assert_eq!(client.inventory(Want::Infrastructure).await.unwrap().datacenters.len(), 1),
            _ => drop(client.tags().categories().await.unwrap()),
        }
        assert_eq!(sim.count("Login"), logins, "{form}");
    }
    let open = sim.sessions();
    assert_eq!((open.soap, open.rest), (1, 1));
    client.logout().await.unwrap();
    assert_eq!((sim.sessions().soap, sim.sessions().rest), (0, 0));
}

#[tokio::test]
async fn many_callers_who_lost_the_session_together_make_one_new_one() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.clock().await.unwrap();
    sim.fault(&json!({ "kind": "sessions" }));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.clock().await.unwrap() })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!((sim.count("Login"), sim.sessions().soap), (2, 1));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_server_that_forgets_every_session_at_once_is_an_error_and_no_endless_loop() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.clock().await.unwrap();
    sim.fault(&json!({ "kind": "fault", "method": "CurrentTime", "type": "NotAuthenticated" }));
    let error = client.clock().await.unwrap_err();
    assert_eq!(*error.fault(), Fault::NotAuthenticated);
    assert_eq!((sim.count("Login"), sim.count("CurrentTime")), (2, 3));
    client.logout().await.unwrap();
}

#[tokio::test]
async fn a_session_lost_while_the_password_changed_is_tried_once_and_never_over_rest() {
    let sim = Vcsim::start();
    let client = sim.client();
    client.tags().categories().await.unwrap();
    sim.fault(&json!({ "kind": "password", "password": "rotated-password" }));
    sim.fault(&json!({ "kind": "sessions" }));
    for _ in 0..3 {
        assert_eq!(*client.tags().categories().await.unwrap_err().fault(), Fault::InvalidLogin);
    }
    assert_eq!(sim.sessions().refused, 1);
}

#[tokio::test]
async fn a_caller_who_loses_patience_during_the_login_leaves_no_session_behind() {
    let sim = Vcsim::start();
    sim.fault(&json!({ "kind": "latency", "method": "Login", "milliseconds": 500 }));
    let client = sim.client();
    let impatient = tokio::time::timeout(Duration::from_millis(100), client.clock()).await;
    assert!(impatient.is_err());
    // The login goes on without its caller; logout waits for it and ends what it made.
    client.logout().await.unwrap();
    assert_eq!(sim.sessions(), crate::vcsim::Sessions { soap: 0, rest: 0, logins: 1, refused: 0 });
}

#[tokio::test]
async fn a_login_whose_answer_breaks_off_leaves_no_session_behind() {
    let sim = Vcsim::start();
    sim.fault(&json!({ "kind": "drop", "method": "Login", "count": 1 }));
    let client = sim.client();
    assert!(matches!(client.clock().await.unwrap_err().fault(), Fault::Dropped(_)));
    assert_eq!(sim.sessions().soap, 0);
    client.clock().await.unwrap();
    client.logout().await.unwrap();
    assert_eq!(sim.sessions().soap, 0);
}
