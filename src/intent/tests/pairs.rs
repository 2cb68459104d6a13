//! Secret pairs: whole or not at all, nobody else's touched, never shown.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use vmi_intent::secret::{Data, Outcome, Pair, Refused, merge, pair, remove, servers};

fn data(pairs: &[(&str, &str)]) -> Data {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect()
}

fn source() -> Data {
    data(&[("a.example.username", "u@v"), ("a.example.password", "secret-a")])
}

fn target() -> Pair {
    Pair::new("b.example", "admin@vsphere.local", "secret-b").unwrap()
}

fn changed(outcome: Outcome) -> Data {
    match outcome {
        Outcome::Changed(data) => data,
        Outcome::AlreadyThere => panic!("nothing changed"),
    }
}

#[test]
fn a_merged_pair_stands_beside_the_others_and_goes_again_without_a_trace() {
    let both = changed(merge(&source(), "b.example", &target()).unwrap());
    assert_eq!(servers(&both).unwrap().into_iter().collect::<Vec<_>>(), ["a.example", "b.example"]);
    assert_eq!(pair(&both, "b.example").unwrap().unwrap(), target());
    assert_eq!(merge(&both, "b.example", &target()).unwrap(), Outcome::AlreadyThere);
    assert_eq!(changed(remove(&both, "b.example")), source());
    assert_eq!(remove(&source(), "b.example"), Outcome::AlreadyThere);
}

#[test]
fn a_server_whose_name_ends_like_another_is_not_mistaken_for_it() {
    let both = changed(merge(&source(), "example", &target()).unwrap());
    assert_eq!(changed(remove(&both, "example")), source());
}

#[test]
fn bad_pairs_are_refused_with_the_key_and_without_the_value() {
    for (held, want) in [
        (data(&[("s.username", "u")]), Refused::Half { key: "s.password".to_owned() }),
        (data(&[("s.password", "hush")]), Refused::Half { key: "s.username".to_owned() }),
        (data(&[("s.username", "u\n"), ("s.password", "hush")]), Refused::Newline { key: "s.username".to_owned() }),
        (data(&[("s.username", "u"), ("s.password", "hush\r\n")]), Refused::Newline { key: "s.password".to_owned() }),
        (data(&[("s.username", "u"), ("s.password", "")]), Refused::Empty { key: "s.password".to_owned() }),
    ] {
        let refused = pair(&held, "s").unwrap_err();
        assert_eq!(refused, want);
        assert!(!format!("{refused} {refused:?}").contains("hush"));
    }
    let binary = Data::from([("s.username".to_owned(), vec![0xff]), ("s.password".to_owned(), b"p".to_vec())]);
    assert_eq!(pair(&binary, "s").unwrap_err(), Refused::NotText { key: "s.username".to_owned() });
    assert_eq!(pair(&source(), "b.example").unwrap(), None);
}

#[test]
fn a_secret_the_cloud_controller_manager_would_refuse_anyway_is_refused() {
    let mut half = source();
    half.remove("a.example.password");
    assert_eq!(merge(&half, "b.example", &target()).unwrap_err(), Refused::Half { key: "a.example.password".to_owned() });
    let mut foreign = source();
    foreign.insert("note".to_owned(), b"x".to_vec());
    assert_eq!(merge(&foreign, "b.example", &target()).unwrap_err(), Refused::Foreign { key: "note".to_owned() });
}

#[test]
fn half_a_pair_of_the_same_server_is_completed() {
    let mut half = source();
    half.insert("b.example.username".to_owned(), b"old".to_vec());
    let both = changed(merge(&half, "b.example", &target()).unwrap());
    assert_eq!(pair(&both, "b.example").unwrap().unwrap(), target());
}

#[test]
fn the_keys_of_ipv6_addresses_are_left_alone() {
    let six = data(&[("server_1", "2001:db8::1"), ("username_1", "u"), ("password_1", "p")]);
    let both = changed(merge(&six, "b.example", &target()).unwrap());
    assert_eq!(changed(remove(&both, "b.example")), six);
}

#[test]
fn nothing_prints_a_pair() {
    let both = merge(&source(), "b.example", &target()).unwrap();
    let printed = format!("{:?} {:?}", target(), both);
    assert!(!printed.contains("secret-") && !printed.contains("admin"), "{printed}");
    assert!(printed.contains("b.example.password"), "the keys may be seen: {printed}");
}

#[test]
fn only_users_with_a_domain_are_good_for_the_csi_driver() {
    for (user, want) in [
        ("administrator@vsphere.local", true),
        (r"CORP\svc-ocp_1", true),
        ("administrator", false),
        ("a b@vsphere.local", false),
        ("@vsphere.local", false),
        ("u@", false),
    ] {
        assert_eq!(Pair::new("s", user, "p").unwrap().names_domain(), want, "{user}");
    }
}
