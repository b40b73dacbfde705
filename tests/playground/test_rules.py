"""The rules in which the stand-in is as strict as Slack, each with the tests that break it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# A test is named by its module and its name, and where one test has many cases, by the case.
RULES: dict[str, tuple[str, ...]] = {
    # What it speaks
    "a method it does not know is an error that names it": (
        "web_api::test_an_unknown_method_is_refused_by_name",
    ),
    "a wrong token, a missing one and one of another kind": (
        "web_api::test_a_wrong_token_and_none",
        "socket_mode::test_only_the_apps_own_token_opens_a_connection",
    ),
    "requests are signed, unsigned ones can be sent": (
        "presses::test_a_press_is_signed_and_shaped_as_slack_sends_it",
        "presses::test_unsigned_and_malformed_requests_can_be_sent",
    ),
    "an answer within three seconds, or a failure mark": (
        "presses::test_slack_waits_three_seconds_unless_told_otherwise",
        "presses::test_a_press_that_is_not_answered_in_time_fails",
        "views::test_a_submission_that_is_not_answered_in_time_keeps_the_modal",
        "socket_mode::test_what_is_not_acknowledged_in_time_has_failed",
    ),
    "a refused press or command shows that it failed": (
        "presses::test_a_refused_press_shows_the_failure_mark_to_who_pressed",
        "presses::test_a_command_that_fails_says_so",
    ),
    # Socket Mode
    "a ticket for a connection works once and soon no longer": (
        "socket_mode::test_a_ticket_lets_one_connection_in_and_soon_none",
    ),
    "a connection is asked for by POST": ("socket_mode::test_a_connection_is_asked_for_by_post_only",),
    "a connection begins with hello": ("socket_mode::test_a_connection_is_greeted",),
    "ten connections and no more": ("socket_mode::test_an_eleventh_connection_is_turned_away",),
    "each envelope goes to one of several connections": (
        "socket_mode::test_each_envelope_goes_to_one_connection",
    ),
    "a payload counts only where the envelope accepts one": (
        "socket_mode::test_a_payload_where_none_is_accepted_is_passed_over",
        "socket_mode::test_a_submission_is_answered_in_the_acknowledgement",
    ),
    "connections are warned, refreshed and closed": (
        "socket_mode::test_a_refreshed_connection_is_asked_to_come_anew_and_closed",
        "socket_mode::test_turning_socket_mode_off_ends_it",
    ),
    # Block Kit and views
    "types of blocks and elements": (
        "blockkit::test_bad_blocks_are_pointed_at[unknown block]",
        "blockkit::test_bad_blocks_are_pointed_at[unknown field]",
        "blockkit::test_bad_blocks_are_pointed_at[button in context]",
        "blockkit::test_bad_views_are_pointed_at[button as input]",
    ),
    "lengths": (
        "blockkit::test_bad_blocks_are_pointed_at[long text]",
        "blockkit::test_bad_blocks_are_pointed_at[long button]",
        "blockkit::test_bad_blocks_are_pointed_at[long value]",
        "blockkit::test_bad_views_are_pointed_at[long title]",
    ),
    "counts": (
        "blockkit::test_bad_blocks_are_pointed_at[51 blocks]",
        "blockkit::test_bad_blocks_are_pointed_at[no elements]",
    ),
    "surfaces": (
        "blockkit::test_bad_views_are_pointed_at[table in a modal]",
        "blockkit::test_bad_views_are_pointed_at[submit of a home]",
    ),
    "duplicate ids": (
        "blockkit::test_bad_blocks_are_pointed_at[two of a block_id]",
        "blockkit::test_bad_blocks_are_pointed_at[two of an action_id]",
    ),
    "choices": ("blockkit::test_bad_blocks_are_pointed_at[options of no kind]",),
    "an input needs a submit": ("blockkit::test_bad_views_are_pointed_at[input without submit]",),
    "the error points at the fault": (
        "web_api::test_bad_blocks_are_refused_with_a_pointer",
        "views::test_a_bad_view_is_refused_with_pointers_and_leaves_the_trigger",
    ),
    # Messages
    "text limits of postMessage and update": ("web_api::test_text_limits",),
    "text without blocks removes the blocks": ("web_api::test_text_without_blocks_removes_the_blocks",),
    "only the bot's own messages are updated": ("web_api::test_only_own_and_present_messages_are_updated",),
    "a direct message is known by its channel, and its history has a scope of its own": (
        "direct_messages::test_a_direct_message_is_updated_and_deleted_by_its_channel",
        "direct_messages::test_a_direct_messages_history_tells_metadata_and_needs_its_own_scope",
    ),
    "malformed metadata": ("web_api::test_malformed_metadata",),
    "ephemerals only to members of the channel, and never updatable": (
        "web_api::test_private_messages_reach_members_only_and_are_nobodys_to_update",
    ),
    "ephemerals are gone after a reload": (
        "changes::test_private_messages_and_open_modals_are_gone_after_a_reload",
        "changes::test_a_private_message_that_was_reloaded_away_cannot_be_replaced",
        "page::test_a_page_shows_no_private_message_from_before_it_was_loaded",
    ),
    # Files
    "an upload that cannot be is refused when its URL is asked for": (
        "files::test_an_upload_that_cannot_be_is_refused_at_once",
    ),
    "as many bytes as were announced": ("files::test_another_length_than_was_announced_is_refused",),
    "an upload URL takes bytes once": ("files::test_an_upload_url_takes_bytes_once_and_a_made_up_one_never",),
    "an upload is completed once, after its bytes came": (
        "files::test_an_upload_is_completed_once_and_not_before_its_bytes_came",
    ),
    "files are shared only where the bot is": ("files::test_a_file_is_shared_only_where_the_bot_is",),
    "a thread is in one channel": ("files::test_a_file_is_a_reply_in_a_thread",),
    "blocks beside a file are checked, too": (
        "files::test_blocks_stand_with_a_file_unless_there_is_a_comment",
    ),
    "a file is read with a token that may read files, or by who sees it": (
        "files::test_a_bot_reads_a_file_with_its_token_and_is_led_astray_without",
        "files::test_a_file_goes_into_a_direct_message_and_only_its_person_sees_it",
        "files::test_a_file_that_is_shared_nowhere_is_nobodys",
    ),
    "a deleted file is gone": ("files::test_a_file_is_looked_up_and_deleted",),
    # Triggers, response_urls and modals
    "a trigger_id works once": ("views::test_a_trigger_works_once", "views::test_a_made_up_trigger"),
    "a trigger_id works for three seconds": ("views::test_a_trigger_works_for_three_seconds",),
    "a response_url works five times": ("presses::test_a_response_url_works_five_times",),
    "a response_url works for thirty minutes": ("presses::test_a_response_url_works_for_half_an_hour",),
    "a response_url answers privately unless asked otherwise": (
        "presses::test_an_answer_is_private_unless_asked_otherwise",
    ),
    "replace_original and delete_original": ("presses::test_the_original_is_replaced_and_deleted",),
    "what goes through a response_url is checked, too": ("presses::test_answers_are_checked_like_messages",),
    "a view goes by its hash": ("views::test_updates_go_by_hash", "web_api::test_home_tabs"),
    "a stack of three modals for each person": ("views::test_the_stack_holds_three",),
    "an answer to a submission that cannot be followed": (
        "views::test_an_answer_that_slack_cannot_follow_fails_and_keeps_the_modal",
    ),
    "Slack's own client complains first": (
        "views::test_slacks_own_client_complains_before_the_bot_is_asked",
    ),
    # Rates
    "a tier for every method, with 429 and Retry-After": (
        "limits::test_a_tier_is_counted_by_the_minute_for_each_method",
        "limits::test_each_tier_has_its_number",
        "limits::test_every_method_has_a_tier",
        "limits::test_the_tiers_are_slacks",
    ),
    "one message a second in a channel": (
        "limits::test_one_message_a_second_in_a_channel_after_a_short_burst",
        "limits::test_a_direct_message_is_one_place_by_either_of_its_names",
    ),
    # Events
    "events are sent again at 0, 1 and 5 minutes with their headers": (
        "events::test_an_event_is_tried_again_at_once_after_a_minute_and_after_five",
        "events::test_the_reason_tells_silence_from_a_refusal_and_from_nobody_there",
        "socket_mode::test_an_event_tells_which_try_it_is",
    ),
    "events to an address that fails nearly always are switched off": (
        "events::test_events_are_switched_off_where_an_address_fails_nearly_always",
    ),
    "x-slack-no-retry is honoured": ("events::test_no_retry_is_honoured",),
    "an address answers a challenge first": ("events::test_an_address_must_answer_a_challenge",),
    # Changes behind the bot's back
    "channels archived": ("web_api::test_an_archived_channel",),
    "messages deleted": ("changes::test_a_deleted_message_is_not_found",),
    "people deactivated": (
        "changes::test_a_deactivated_person_is_still_known_and_what_is_written_to_them_is_read_by_nobody",
        "web_api::test_direct_messages",
    ),
    "bots removed from a channel": (
        "changes::test_a_bot_that_was_removed_from_a_channel_is_outside",
        "changes::test_a_bot_that_was_removed_hears_of_itself_only_and_of_nobody_after",
    ),
    "a private channel does not exist for those outside": (
        "web_api::test_a_private_channel_does_not_exist_for_those_outside",
    ),
    # The manifest in use
    "missing_scope with needed and provided": (
        "install::test_a_method_needs_its_scope",
        "install::test_everything_that_writes_needs_chat_write",
        "install::test_the_scope_goes_by_the_kind_of_conversation",
        "files::test_files_need_their_scopes",
    ),
    "Dibs' own manifests are enough": ("main_job::test_over_http", "main_job::test_over_socket_mode"),
    "a command that is not registered is not valid": (
        "install::test_a_command_that_is_not_registered_is_not_valid",
    ),
    "no Home tab, no view in it": ("install::test_a_home_tab_that_is_not_enabled_takes_no_view",),
    "no interactivity, no presses": ("install::test_without_interactivity_a_press_goes_nowhere",),
    "only the shortcuts of the manifest": ("install::test_shortcuts_are_those_of_the_manifest",),
    "only the events that were subscribed to": (
        "install::test_events_are_told_only_to_who_subscribed",
        "install::test_nobody_who_did_not_subscribe_is_told_of_messages",
    ),
    "a manifest that does not hold together is refused": (
        "install::test_a_manifest_that_does_not_hold_together_is_refused",
    ),
    # People and workspaces
    "user groups": (
        "workspaces::test_user_groups",
        "install::test_changes_of_a_user_group_are_told_to_who_subscribed",
        "install::test_a_manifest_must_grant_user_groups_to_hear_of_them",
    ),
    "guests": ("workspaces::test_guests",),
    "people of another workspace": ("workspaces::test_somebody_of_another_workspace_in_a_shared_channel",),
    "a second workspace": (
        "workspaces::test_a_second_workspace_has_its_own_people_channels_and_token",
        "workspaces::test_where_the_app_is_not_installed_it_is_not_there",
    ),
    "a code is exchanged once and in time": ("workspaces::test_a_code_is_exchanged_once_and_in_time",),
    "an installation that is not allowed": (
        "workspaces::test_a_page_that_cannot_be_shown_says_why",
        "workspaces::test_whoever_cancels_sends_the_app_a_refusal",
        "workspaces::test_a_manifest_says_where_to_return_to_and_what_may_be_asked_for",
    ),
    "a token that was revoked": (
        "workspaces::test_a_revoked_token_is_of_no_use_and_the_app_hears_of_it",
        "workspaces::test_an_administrator_removes_the_app",
    ),
    # Faults on purpose
    "answers lost after the work was done": (
        "faults::test_an_answer_lost_after_the_work_was_done",
        "faults::test_a_press_whose_answer_is_lost_has_failed_though_it_worked",
    ),
    "429 on purpose": ("faults::test_a_rate_limit_says_when_to_come_back",),
    "500 on purpose": ("faults::test_a_server_error",),
    "garbage": ("faults::test_garbage",),
    "silence": ("faults::test_silence",),
    "slow": ("faults::test_a_late_answer",),
    "delivered twice": (
        "faults::test_an_event_is_delivered_twice",
        "faults::test_a_press_is_delivered_twice_and_answered_once",
    ),
    "out of order": ("faults::test_events_arrive_out_of_order",),
    "connections cut": (
        "faults::test_a_connection_cut_before_any_work_was_done",
        "socket_mode::test_a_connection_is_cut_without_a_word",
        "socket_mode::test_a_press_on_a_connection_that_ends_has_failed",
    ),
    "the clock shifted": ("faults::test_the_clock_is_shifted_by_http",),
    "faults by HTTP": (
        "faults::test_faults_are_listed_set_and_cleared_by_http",
        "faults::test_what_is_asked_for_wrongly_changes_nothing",
    ),
    # Apart
    "it listens on loopback only": ("page::test_it_listens_on_loopback_only",),
    "no other site drives it": (
        "page::test_another_sites_page_cannot_drive_it",
        "socket_mode::test_another_sites_page_gets_no_connection",
        "faults::test_another_sites_form_sets_no_faults",
        "files::test_an_upload_url_is_for_this_machine_only",
        "files::test_a_page_in_a_file_is_never_run_here",
    ),
    "Slack's own clients work unchanged": (
        "socket_mode::test_slack_sdks_builtin_client_works_unchanged_and_comes_back",
        "socket_mode::test_bolts_socket_mode_handler_works_unchanged",
        "presses::test_fifty_people_race_and_one_wins",
        "files::test_slacks_own_client_uploads_a_file_into_a_channel",
    ),
}


@cache
def contents(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the tests in a module, and the words that name their cases."""
    tree = ast.parse((HERE / f"test_{module}.py").read_text())
    nodes = list(ast.walk(tree))
    tests = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(tests), frozenset(words)


def is_there(test: str) -> bool:
    module, _, rest = test.partition("::")
    name, _, case = rest.partition("[")
    tests, words = contents(module)
    return name in tests and (not case or case.removesuffix("]") in words)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_tests_that_break_it(rule: str) -> None:
    assert RULES[rule]
    assert [test for test in RULES[rule] if not is_there(test)] == []


def test_a_test_that_is_gone_is_missed() -> None:
    assert is_there("limits::test_every_method_has_a_tier")
    assert not is_there("limits::test_no_method_has_a_tier")
    assert is_there("blockkit::test_bad_blocks_are_pointed_at[long text]")
    assert not is_there("blockkit::test_bad_blocks_are_pointed_at[longest text]")
