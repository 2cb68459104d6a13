//! Whole-system tests. `cargo test -p vmi-system-tests --test system -- [quick|ci|full] [WORD...]` runs those of that depth
//! whose names hold one of the words; each shape's lab is booted once and shared by the tests that leave it as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod admission;
mod alone;
mod approved;
mod autoscaling;
mod bench;
mod command_line;
mod commands;
mod disturbed;
mod docs;
mod endurance;
mod fault_rehearsals;
mod faults;
mod faults_listed;
mod growth;
mod killed;
mod kit;
mod kubelet_api;
mod machines;
mod monitoring;
mod node_agent;
mod planeless;
mod pods;
mod refused;
mod rehearsal;
mod rich_shape;
mod rollback;
mod stand_ins;
mod storage;
mod support;
mod vmi_crd;

use std::process::ExitCode;

use support::suite::{self, Depth, Suite};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // This binary is the lab's own program too: its supervisor, its stand-ins, and the command line under test.
    if vmi_lab::commands::is_for_a_lab(&arguments) || std::env::var_os(support::command::AS_COMMAND_LINE).is_some() {
        return vmi_lab::commands::main(&arguments);
    }
    // And it is `vmi` itself.
    if std::env::var_os(commands::AS_VMI).is_some() {
        return vmi::commands::main(&arguments);
    }
    suite::main(&arguments, &all())
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
        a_failure_domain_that_the_control_plane_machine_set_names_does_not_leave,
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
        too_little_disk_is_said_before_anything_is_built,
        a_program_that_dies_at_start_is_shown_with_the_end_of_its_log,
    });
    alone!(suite, Depth::Ci, command_line::{
        a_program_that_dies_at_start_in_a_pod_is_shown_with_the_end_of_its_log,
        up_says_what_to_type_next_and_down_leaves_nothing,
        two_labs_run_side_by_side_and_do_not_see_each_other,
        a_killed_lab_leaves_no_process_and_no_port_after_the_next_up,
        a_killed_lab_leaves_no_process_and_no_port_after_down,
    });
    in_lab!(suite, "plain", Depth::Quick, command_line::{
        status_tells_where_a_lab_is_and_how_it_is,
        a_reader_that_leaves_early_is_no_failure,
        logs_shows_any_component_and_names_those_there_are,
        kubectl_speaks_to_the_lab_and_passes_its_exit_code_on,
    });
    alone!(suite, Depth::Ci, bench::{a_benchmark_does_all_of_its_work_and_reports_every_figure_the_document_tells});
    alone!(suite, Depth::Ci, rehearsal::{
        a_rehearsal_writes_the_documented_report_and_leaves_no_process,
        a_report_that_cannot_be_written_is_said_so,
        a_way_back_that_there_is_not_is_said_so,
        without_an_operator_a_rehearsal_does_not_even_boot,
        a_native_move_ends_well,
        a_legacy_move_ends_well,
        a_rich_move_ends_well,
    });
    // What CI has of growths is killed and turned back on the way.
    alone!(suite, Depth::Full, rehearsal::{
        a_native_growth_ends_well,
        a_legacy_growth_ends_well,
        a_native_boot_ends_well,
        a_legacy_boot_ends_well,
        a_rehearsal_of_an_old_configuration_ends_well,
        a_rehearsal_with_zones_ends_well,
        a_rich_rehearsal_ends_well,
        a_rehearsal_with_secrets_made_by_hand_ends_well,
        a_move_of_an_old_configuration_ends_well,
        a_move_with_zones_ends_well,
        a_move_with_secrets_made_by_hand_ends_well,
        a_move_to_two_vcenters_ends_well,
        a_growth_by_two_vcenters_ends_well,
        an_ancient_move_ends_well,
        an_ancient_growth_ends_well,
        a_move_of_a_cluster_that_may_begin_with_one_vcenter_only_ends_well,
        a_growth_of_a_cluster_that_may_begin_with_one_vcenter_only_ends_well,
        a_large_boot_ends_well,
        a_native_rehearsal_that_is_turned_back_ends_where_it_began,
        a_legacy_rehearsal_that_is_turned_back_ends_where_it_began,
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
    in_lab!(suite, "plain", Depth::Quick, vmi_crd::{
        the_vmi_is_served_with_its_defaults_and_kubectl_shows_its_columns,
        a_bad_vmi_is_refused_and_the_field_is_named,
        a_state_leads_only_where_it_may,
        once_started_only_what_may_change_changes,
        two_controllers_do_not_erase_each_others_conditions,
    });
    in_lab!(suite, "native", Depth::Ci, kit::{
        a_step_plans_acts_in_its_turn_latches_and_is_taken_back,
        a_paused_step_changes_nothing_until_it_is_resumed,
        a_write_is_not_made_when_the_vmi_has_changed_its_mind,
        a_killed_step_goes_on_from_what_it_sees,
        what_others_change_of_a_finished_step_is_shown_until_it_is_mended_or_taken_over_and_never_repaired,
    });
    in_lab!(suite, "plain", Depth::Quick, kit::{
        an_original_is_saved_once_whatever_others_save_meanwhile,
        what_was_made_can_be_read_at_once_and_what_was_deleted_cannot,
    });
    in_lab!(suite, "plain", Depth::Ci, kit::{one_process_leads_at_a_time_and_the_next_takes_over});
    alone!(suite, Depth::Ci, growth::{a_cluster_grown_by_hand_passes_the_verdict});
    alone!(suite, Depth::Quick, growth::{
        everything_that_a_controller_writes_is_in_a_dump_so_that_a_way_back_that_leaves_it_is_noticed,
    });
    alone!(suite, Depth::Ci, rollback::{a_migration_can_be_turned_back_from_every_step});
    alone!(suite, Depth::Full, rollback::{
        a_legacy_growth_can_be_turned_back_from_every_step,
        a_move_can_be_turned_back_before_machines_are_replaced,
        a_legacy_move_can_be_turned_back_before_machines_are_replaced,
        a_legacy_move_can_be_turned_back_while_machines_are_replaced,
        a_rich_move_can_be_turned_back_before_machines_are_replaced,
        a_rich_move_can_be_turned_back_while_machines_are_replaced,
        an_ancient_move_can_be_turned_back,
        a_move_of_a_cluster_that_may_begin_with_one_vcenter_only_can_be_turned_back,
    });
    alone!(suite, Depth::Full, planeless::{
        without_a_control_plane_machine_set_and_a_generator_one_is_made_moved_and_taken_away,
    });
    alone!(suite, Depth::Full, approved::{
        a_move_that_waits_for_approval_can_be_turned_back_when_the_sources_workers_have_left_and_is_completed_once_approved,
    });
    alone!(suite, Depth::Full, disturbed::{
        restarts_of_the_apiserver_and_the_death_of_its_leader_do_not_end_a_move,
        what_others_change_while_machines_are_replaced_is_dealt_with,
        a_cluster_that_was_moved_is_moved_back_by_another_vmi_of_the_same_name_between_crowded_vcenters,
        a_legacy_cluster_that_grew_is_moved_off_its_first_vcenter_later,
    });
    alone!(suite, Depth::Ci, killed::{killed_after_each_of_its_writes_a_move_is_completed});
    alone!(suite, Depth::Full, killed::{
        killed_after_each_write_and_paused_at_every_step_a_growth_is_completed,
        a_legacy_growth_killed_after_each_write_and_paused_at_every_step_is_completed,
        killed_after_each_of_its_writes_a_legacy_move_is_completed,
        killed_after_each_of_its_writes_a_rich_move_is_completed,
        killed_after_each_of_its_writes_a_move_to_two_vcenters_is_completed,
        paused_at_every_step_a_move_is_completed,
    });
    in_lab!(suite, "native", Depth::Ci, killed::{killed_after_each_of_its_writes_a_growth_gets_there_and_back});
    in_lab!(suite, "native", Depth::Ci, endurance::{
        of_two_operators_one_acts_and_the_other_takes_over_when_it_is_killed,
        a_growth_and_its_way_back_go_on_when_the_apiserver_was_restarted,
        a_second_vmi_waits_and_one_in_another_namespace_is_left_alone,
    });
    in_lab!(suite, "native", Depth::Ci, growth::{
        what_a_rehearsal_asks_for_is_accepted_by_the_apiserver,
        what_the_operators_account_is_denied_is_told,
        a_dump_is_equal_until_something_changes_in_the_cluster_or_in_a_vcenter,
        a_cluster_that_was_not_grown_fails_the_verdict_with_what_is_missing,
    });
    in_lab!(suite, "plain", Depth::Quick, commands::{
        status_shows_a_vmi_and_exits_as_it_stands,
        status_follows_a_migration_line_by_line_and_ends_with_it,
        on_a_terminal_the_status_is_redrawn_in_colour,
    });
    in_lab!(suite, "native", Depth::Ci, commands::{on_the_native_path_the_account_may_do_what_it_needs_and_no_more});
    in_lab!(suite, "legacy-yaml", Depth::Ci, commands::{on_the_legacy_path_the_account_may_also_relax_the_rules});
    in_lab!(suite, "native", Depth::Ci, faults::{
        every_fault_of_a_vcenter_strikes_until_it_is_lifted,
        what_a_fault_did_to_a_vcenters_calls_is_counted,
        sessions_end_and_privileges_are_missing,
        a_fault_that_there_is_not_is_refused_with_what_there_is,
        faults_are_added_shown_by_status_and_lifted_on_the_command_line,
        the_apiserver_is_restarted_and_the_lab_goes_on,
        the_machine_controller_crash_loops_and_its_neighbours_do_not,
        the_cloud_controller_manager_is_killed_and_comes_back,
        a_control_plane_node_without_a_machine_degrades_the_control_plane_machine_set,
    });
    in_lab!(suite, "native", Depth::Full, faults::{
        a_machine_that_never_joins_is_provisioned_and_has_no_node,
        a_blocked_drain_holds_a_machine_until_it_is_lifted,
        a_vcenter_is_crowded_in_one_go,
    });
    in_lab!(suite, "rich", Depth::Full, storage::{
        the_drivers_configuration_has_the_source_and_its_pods_follow_it,
        a_bare_metal_node_degrades_storage_with_its_name,
        a_volume_is_attached_and_let_go,
        a_volume_is_not_attached_to_a_node_that_is_no_virtual_machine,
        the_problem_detector_finishes_a_round_and_names_the_node_without_an_id,
        what_the_problem_detector_found_is_in_events_and_metrics,
        the_problem_detector_says_what_is_denied_and_which_class_names_nothing,
    });
    in_lab!(suite, "native", Depth::Ci, refused::{
        a_wrong_password_is_sent_once_in_all_by_operators_that_are_killed_and_started_again,
    });
    in_lab!(suite, "rich", Depth::Full, refused::{a_move_that_would_leave_a_volume_behind_is_not_started_and_its_claim_is_named});
    in_lab!(suite, "rich", Depth::Full, rich_shape::{
        the_rich_shape_has_the_sets_budgets_checks_and_volumes_that_it_is_there_for,
        a_blocked_drain_has_a_pod_on_every_worker_also_on_the_tainted_ones,
    });
    in_lab!(suite, "rich", Depth::Full, autoscaling::{the_autoscaler_has_marked_the_set_that_it_scales});
    in_lab!(suite, "native", Depth::Ci, faults_listed::{status_names_every_fault_of_a_vcenter_until_it_is_lifted});
    in_lab!(suite, "plain", Depth::Quick, faults_listed::{status_names_every_fault_of_a_cluster_until_it_is_lifted});
    in_lab!(suite, "multi-zone", Depth::Full, storage::{several_failure_domains_turn_topology_on});
    in_lab!(suite, "plain", Depth::Ci, faults::{what_a_slow_watch_brings_comes_after_it_has_happened});
    alone!(suite, Depth::Ci, fault_rehearsals::{
        a_growth_stops_for_a_certificate_crashes_and_a_killed_manager_but_not_for_a_minute_of_503_and_is_completed,
    });
    alone!(suite, Depth::Full, fault_rehearsals::{
        a_growth_stops_for_a_wrong_password_a_foreign_key_and_a_missing_datacenter_and_is_completed,
        a_move_stops_for_a_missing_tag_category_a_lost_template_and_a_node_that_never_joins_and_is_completed,
        a_move_stops_for_a_stuck_member_a_degraded_control_plane_a_blocked_drain_and_crashes_after_the_last_way_back_and_is_completed,
    });
    in_lab!(suite, "native", Depth::Ci, monitoring::{an_alert_fires_when_a_migration_fails_and_is_over_when_it_goes_on});
    alone::add(&mut suite);
    stand_ins::add(&mut suite);
    suite
}
