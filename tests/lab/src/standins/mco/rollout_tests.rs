use super::*;
use crate::nodes::BOOTS;

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn config(text: &str) -> Value {
    rendered("worker", &json!({"spec": {"cloudProviderConfig": text}}))
}

fn name(config: &Value) -> String {
    config["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Nodes and a pool, and what follows step by step until nothing does.
struct World {
    nodes: Vec<DynamicObject>,
    pool: DynamicObject,
    configs: BTreeMap<String, Value>,
    policy: Value,
    /// Whether drains come to an end, and whose did.
    drains: bool,
    drained: Vec<String>,
}

impl World {
    fn new(paused: bool, policy: Value) -> World {
        let (old, new) = (config("old"), config("new"));
        let node = |index: u8| {
            let annotations = json!({CURRENT: name(&old), DESIRED: name(&old), STATE: "Done", BOOTS: "1"});
            object(json!({"metadata": {"name": format!("n{index}"), "annotations": annotations}, "spec": {}}))
        };
        World {
            nodes: vec![node(0), node(1)],
            pool: object(json!({"metadata": {"name": "worker"},
                "spec": {"paused": paused, "configuration": {"name": name(&new)}}, "status": {"configuration": {"name": name(&old)}}})),
            configs: [old, new].into_iter().map(|config| (name(&config), config)).collect(),
            policy,
            drains: true,
            drained: Vec::new(),
        }
    }

    fn step(&mut self) -> Vec<String> {
        let nodes: Vec<&DynamicObject> = self.nodes.iter().collect();
        let ready = |node: &DynamicObject| node.data["spec"]["unschedulable"] != true;
        let made = steps(&Pool { pool: &self.pool, nodes: &nodes, configs: &self.configs, policy: &self.policy, ready });
        for (name, patch) in &made {
            let node = self.nodes.iter_mut().find(|node| node.name_any() == *name).unwrap();
            for (key, value) in patch["metadata"]["annotations"].as_object().into_iter().flatten() {
                node.annotations_mut().insert(key.clone(), value.as_str().unwrap().to_owned());
            }
        }
        // What the drain controller does, when it may.
        for node in self.nodes.iter_mut().filter(|_| self.drains) {
            let desired = annotation(node, DESIRED_DRAIN).to_owned();
            if !desired.is_empty() && annotation(node, LAST_DRAIN) != desired {
                node.data["spec"]["unschedulable"] = json!(desired.starts_with("drain-"));
                self.drained.extend(desired.starts_with("drain-").then(|| node.name_any()));
                node.annotations_mut().insert(LAST_DRAIN.to_owned(), desired);
            }
        }
        made.into_iter().map(|(name, _)| name).collect()
    }

    fn reboots(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| annotation(node, REBOOTS)).collect()
    }

    fn settle(&mut self) {
        for _ in 0..20 {
            let cordoned = self.nodes.iter().filter(|node| node.data["spec"]["unschedulable"] == true).count();
            assert!(cordoned <= 1, "two nodes are away at once");
            if self.step().is_empty() {
                return;
            }
        }
        panic!("it never ends");
    }
}

#[test]
fn a_changed_cloud_conf_reboots_every_node_one_after_the_other() {
    let mut world = World::new(false, json!({}));
    world.settle();
    assert_eq!(world.reboots(), ["1", "1"]);
    assert_eq!(world.drained, ["n0", "n1"]);
    let target = name(&config("new"));
    assert!(world.nodes.iter().all(|node| is_updated(node, &target) && node.data["spec"]["unschedulable"] != true));
}

#[test]
fn a_reboot_is_counted_beside_the_boots_of_the_machine_which_does_not_notice() {
    let mut world = World::new(false, json!({}));
    world.nodes[0].annotations_mut().insert(REBOOTS.to_owned(), "4".to_owned());
    world.settle();
    assert_eq!(world.reboots(), ["5", "1"]);
    assert!(world.nodes.iter().all(|node| annotation(node, BOOTS) == "1"));
}

#[test]
fn a_policy_that_calls_the_file_harmless_saves_the_reboots() {
    let policy = json!({"clusterPolicies": {"files": [{"path": CLOUD_CONF, "actions": [{"type": "None"}]}]}});
    let mut world = World::new(false, policy);
    world.settle();
    assert_eq!(world.reboots(), ["", ""]);
    assert!(world.drained.is_empty());
    let target = name(&config("new"));
    assert!(world.nodes.iter().all(|node| is_updated(node, &target)));
}

#[test]
fn a_policy_that_wants_a_drain_gets_it_and_no_reboot() {
    let policy = json!({"clusterPolicies": {"files": [{"path": CLOUD_CONF, "actions": [{"type": "Restart"}, {"type": "Drain"}]}]}});
    let mut world = World::new(false, policy);
    world.settle();
    assert_eq!(world.reboots(), ["", ""]);
    assert_eq!(world.drained, ["n0", "n1"]);
}

#[test]
fn nothing_reboots_before_it_is_drained_and_nobody_else_goes_meanwhile() {
    let mut world = World::new(false, json!({}));
    world.drains = false;
    while !world.step().is_empty() {}
    assert_eq!(world.reboots(), ["", ""]);
    let asking: Vec<&str> = world.nodes.iter().map(|node| annotation(node, DESIRED_DRAIN)).collect();
    assert_eq!(asking, [format!("drain-{}", name(&config("new"))).as_str(), ""]);
}

#[test]
fn a_pool_says_how_many_of_its_nodes_may_be_away_at_once() {
    for (wanted, nodes, expected) in
        [(json!(null), 9, 1), (json!(3), 9, 3), (json!("50%"), 9, 4), (json!("10%"), 9, 1), (json!(0), 9, 1), (json!("many"), 9, 1)]
    {
        assert_eq!(at_once(&wanted, nodes), expected, "{wanted}");
    }
    let mut world = World::new(false, json!({}));
    world.pool.data["spec"]["maxUnavailable"] = json!(2);
    world.drains = false;
    while !world.step().is_empty() {}
    assert!(world.nodes.iter().all(|node| annotation(node, STATE) == "Working"));
}

#[test]
fn a_paused_pool_waits_and_serves_new_nodes_what_it_has_reached() {
    let mut world = World::new(true, json!({}));
    assert_eq!(world.step(), Vec::<String>::new());
    world.nodes.push(object(json!({"metadata": {"name": "new"}, "spec": {}})));
    world.settle();
    assert_eq!(annotation(&world.nodes[2], CURRENT), name(&config("old")));
}

#[test]
fn the_same_configuration_has_the_same_name() {
    assert_eq!(config("a"), config("a"));
    assert_ne!(name(&config("a")), name(&config("b")));
    assert!(name(&config("a")).starts_with("rendered-worker-"));
}
