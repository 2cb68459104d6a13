//! Each controller by itself on a real cluster, with what the others would report set by hand.

mod cleanup;
mod cluster_freeze;
mod config_rewrite;
mod control_plane;
mod freeze_otherwise;
mod log_flood;
mod machine_rollout;
mod pod_health_watch;
mod preflight;
mod vcenter_prep;

use crate::in_lab;
use crate::support::suite::{Depth, Suite};

pub fn add(suite: &mut Suite) {
    crate::alone!(suite, Depth::Ci, machine_rollout::{
        everything_moves_to_the_target_machine_by_machine_and_back_to_the_source,
        a_set_that_was_only_added_leaves_again_and_a_budget_that_keeps_a_machine_is_named,
    });
    crate::alone!(suite, Depth::Full, control_plane::{
        a_control_plane_moves_and_comes_back_whatever_its_set_was_told_to_do_by_itself,
    });
    in_lab!(suite, "rich", Depth::Full, preflight::{
        a_move_that_would_leave_a_volume_behind_is_refused_by_its_claim_until_that_is_accepted,
    });
    in_lab!(suite, "native", Depth::Ci, preflight::{
        a_good_vmi_passes_every_check_and_starts_when_it_is_told_to,
        a_plan_that_needs_approval_starts_only_with_its_own_hash_and_shows_what_changed_since,
        another_migration_is_waited_for_and_one_that_is_gone_is_not,
        bad_input_is_refused_by_its_field_and_nothing_is_touched,
        a_wrong_password_is_tried_once_in_all_whoever_looks_again,
        a_certificate_that_is_not_trusted_is_shown_and_can_be_pinned,
        what_the_user_may_not_do_and_tags_in_the_way_are_named,
    });
    in_lab!(suite, "legacy-yaml", Depth::Ci, preflight::{
        a_cluster_that_refuses_a_second_vcenter_is_planned_on_the_legacy_path_once_its_overlay_is_applied,
    });
    in_lab!(suite, "native", Depth::Ci, cluster_freeze::{
        a_native_cluster_has_its_machines_held_and_released_and_nothing_else,
        a_control_plane_machine_set_is_saved_deleted_made_anew_by_its_operator_and_put_back,
    });
    in_lab!(suite, "native", Depth::Full, freeze_otherwise::{
        where_no_policy_is_shown_reboots_are_held_by_pools_until_the_thaw,
        a_control_plane_machine_set_that_nobody_makes_anew_is_waited_for_and_made_again_on_the_way_back,
    });
    in_lab!(suite, "legacy-yaml", Depth::Ci, cluster_freeze::{
        a_legacy_cluster_is_frozen_unlocked_and_thawed_and_holds_taken_away_are_taken_again,
        a_legacy_cluster_taken_back_ends_as_it_was_also_if_the_controller_was_killed_meanwhile,
        with_overrides_the_version_operator_stays_alive_and_what_others_changed_is_left,
    });
    in_lab!(suite, "native", Depth::Ci, vcenter_prep::{
        tags_and_folder_are_planned_made_with_few_calls_and_taken_back,
        killed_during_any_of_its_changes_it_goes_on_and_can_still_be_taken_back,
        an_object_with_another_tag_of_the_category_is_refused_and_nothing_is_attached,
        what_others_use_meanwhile_is_left_and_listed,
        a_wrong_password_is_tried_once_whoever_looks_again_until_it_changes,
    });
    in_lab!(suite, "native", Depth::Ci, pod_health_watch::{
        pods_are_planned_replaced_once_and_healthy_after_the_quiet_period_and_again_on_the_way_back,
        a_line_that_the_user_calls_fatal_holds_the_migration_until_it_is_accepted,
        a_process_that_crashes_holds_the_migration_through_its_back_off_and_is_told_with_its_last_words,
        a_refused_password_holds_the_migration_with_the_line_and_what_to_do_and_can_be_accepted,
    });
    in_lab!(suite, "native", Depth::Full, log_flood::{twenty_containers_that_flood_their_logs_are_read_whole_and_take_no_room});
    in_lab!(suite, "native", Depth::Ci, cleanup::{
        the_source_leaves_through_the_one_way_door_and_killed_on_either_side_it_is_finished,
    });
    in_lab!(suite, "native", Depth::Ci, config_rewrite::{
        the_target_is_planned_added_and_taken_back_to_the_byte,
        in_manual_mode_every_secret_is_written_and_what_others_changed_since_stays,
        what_others_changed_in_infrastructure_and_the_cloud_configuration_survives_the_way_back,
        the_way_back_waits_for_whoever_uses_the_target_and_goes_on_when_they_left,
        a_target_that_is_there_already_is_left_on_the_way_back,
        what_others_take_away_of_the_target_is_shown_and_left_and_forgotten_once_it_is_back,
        // Last: what it is denied stays in the lab's audit log.
        a_secret_that_may_not_be_read_is_named_with_the_command_that_allows_it,
    });
}
