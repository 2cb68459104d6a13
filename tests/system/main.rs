//! Whole-system tests. `cargo test -p vmi-system-tests --test system -- [quick|ci|full] [WORD...]` runs those of that depth
//! whose names hold one of the words; each shape's lab is booted once and shared by the tests that leave it as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod admission;
mod command_line;
mod docs;
mod kubelet_api;
mod machines;
mod node_agent;
mod pods;
mod rehearsal;
mod stand_ins;
mod support;

use std::process::ExitCode;

use support::suite::{self, Depth, Suite};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // This binary is the lab's own program too: its supervisor, its stand-ins, and the command line under test.
    if vmi_lab::commands::is_for_a_lab(&arguments) || std::env::var_os(support::command::AS_COMMAND_LINE).is_some() {
        return vmi_lab::commands::main(&arguments);
    }
    suite::main(&arguments, all())
}

fn all() -> Suite {
    let mut suite = Suite::default();
    alone!(suite, Depth::Ci, admission::{the_real_operator_moves_the_control_plane_and_admission_guards_the_source});
    in_lab!(suite, "native", Depth::Ci, machines::{
        the_real_cloud_controller_manager_initialises_nodes_from_their_virtual_machines,
        a_machine_set_is_scaled_from_two_to_four_to_zero_by_the_real_controllers,
        a_switched_off_machine_makes_its_node_unready_until_it_boots_again,
        a_deleted_machine_is_replaced_and_its_node_and_virtual_machine_leave,
    });
    in_lab!(suite, "native", Depth::Ci, pods::{
        a_deleted_pod_comes_back_as_a_new_process,
        a_wrong_password_shows_the_real_line_in_the_logs_of_the_cloud_controller_manager,
    });
    in_lab!(suite, "native", Depth::Ci, admission::{
        an_added_vcenter_is_accepted_by_the_native_rules,
        a_failure_domain_without_its_vcenter_is_refused_by_the_native_rules,
        a_machine_that_the_real_webhook_does_not_like_is_refused,
        the_source_failure_domain_matches_the_machines_string_by_string,
    });
    in_lab!(suite, "legacy-yaml", Depth::Ci, admission::{
        an_added_vcenter_is_refused_by_the_legacy_rules,
        the_source_failure_domain_matches_the_machines_string_by_string,
    });
    in_lab!(suite, "plain", Depth::Quick, node_agent::{
        a_pod_runs_as_a_process_that_ends_with_it,
        a_deleted_container_may_end_in_its_own_way_within_its_grace_period,
        a_crashing_container_backs_off_and_keeps_its_previous_log,
        a_pod_that_is_not_restarted_ends_as_succeeded_or_failed,
        init_containers_run_one_after_the_other_before_the_rest,
        a_pod_waits_for_its_secret_and_sees_it_change,
        readiness_follows_its_probe,
        a_failing_liveness_probe_restarts_the_container,
        a_rebooted_node_starts_its_containers_again,
        a_lost_node_takes_its_pods_along,
        what_cannot_run_says_why,
    });
    in_lab!(suite, "plain", Depth::Quick, kubelet_api::{
        kubectl_logs_shows_what_a_container_printed_and_when,
        following_a_log_ends_with_the_container,
        a_service_leads_to_its_ready_pod,
        a_pod_speaks_to_the_apiserver_as_its_service_account,
        exec_is_refused_with_a_sentence,
    });
    alone!(suite, Depth::Quick, command_line::{
        an_unknown_shape_is_refused_with_the_known_ones,
        a_wrong_name_or_block_is_refused_with_what_is_wanted,
        a_name_never_leads_out_of_the_folder_of_labs,
        an_address_in_use_is_named,
        a_program_that_dies_at_start_is_shown_with_the_end_of_its_log,
    });
    alone!(suite, Depth::Ci, command_line::{
        up_says_what_to_type_next_and_down_leaves_nothing,
        two_labs_run_side_by_side_and_do_not_see_each_other,
        a_killed_lab_leaves_no_process_and_no_port_after_the_next_up,
        a_killed_lab_leaves_no_process_and_no_port_after_down,
    });
    in_lab!(suite, "plain", Depth::Quick, command_line::{
        status_tells_where_a_lab_is_and_how_it_is,
        logs_shows_any_component_and_names_those_there_are,
        kubectl_speaks_to_the_lab_and_passes_its_exit_code_on,
    });
    alone!(suite, Depth::Ci, rehearsal::{
        a_rehearsal_writes_the_documented_report_and_leaves_no_process,
        a_report_that_cannot_be_written_is_said_so,
    });
    alone!(suite, Depth::Full, rehearsal::{
        a_native_rehearsal_ends_well,
        a_legacy_rehearsal_ends_well,
        without_root_the_vcenters_listen_on_a_port_that_anybody_may_use,
    });
    alone!(suite, Depth::Quick, docs::{
        every_link_leads_somewhere,
        everything_on_the_map_exists_and_every_package_is_on_it,
        every_command_is_written_so_that_it_can_run,
    });
    alone!(suite, Depth::Ci, docs::{what_is_to_be_typed_works});
    in_lab!(suite, "native", Depth::Ci, docs::{
        what_is_to_be_typed_in_a_native_lab_works,
        the_documented_faults_are_accepted,
    });
    stand_ins::add(&mut suite);
    suite
}
