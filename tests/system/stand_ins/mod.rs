//! Each stand-in alone, on a real apiserver, against what is known of the operator it stands for.

mod cccmo;
mod cco;

use crate::in_lab;
use crate::support::suite::{Depth, Suite};

pub fn add(suite: &mut Suite) {
    in_lab!(suite, "plain", Depth::Quick, cccmo::{
        the_cloud_config_follows_its_source_and_infrastructure,
        from_4_23_only_infrastructures_vcenters_count,
        a_panic_leaves_the_old_config_and_an_operator_that_looks_well,
        up_to_4_17_a_panic_ends_the_process_as_go_does,
        an_unreadable_source_degrades_the_operator_until_it_is_mended,
        the_deployment_rolls_with_config_certificates_and_credentials_and_keeps_two_replicas,
    });
    in_lab!(suite, "plain", Depth::Quick, cco::{
        a_target_follows_keys_added_to_the_root_and_removed_from_it,
        an_edited_target_stays_edited_until_the_root_changes,
        manual_mode_touches_nothing,
        without_a_root_a_new_request_fails_and_an_old_one_keeps_its_copy,
        a_request_waits_for_its_namespace,
    });
}
