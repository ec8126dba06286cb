"""Small implementations of each role are held to what everybody in it keeps; faulty ones are found out."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import pathlib
from types import SimpleNamespace
from typing import ClassVar

import pytest

from ropewalk.kits.hooks import discovery
from ropewalk_testing import (
    ContextConformance,
    ExecutorConformance,
    GuardConformance,
    RetryConformance,
    StorageConformance,
    ToolConformance,
    ToolProviderConformance,
)
from ropewalk_testing.roles import common


def loaded(name):
    """What a module beside this one defines: test modules are no package."""
    spec = importlib.util.spec_from_file_location(name, pathlib.Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


faulty = SimpleNamespace()
for part in ("faulty_tools", "faulty_running", "faulty_keeping"):
    vars(faulty).update(loaded(part))


class TestTool(ToolConformance):
    input: ClassVar = {"word": "hello"}
    wrong: ClassVar = {"word": 3}
    slow: ClassVar = {"word": "wait"}

    @pytest.fixture
    def tool(self):
        return faulty.Tool()


class TestProvider(ToolProviderConformance):
    call = ("say", {"word": "hello"})

    @pytest.fixture
    def provider(self):
        return faulty.Provider()

    def is_open(self, provider):
        return provider.opened


class TestExecutor(ExecutorConformance):
    def executor(self):
        return faulty.Executor()


class TestOneByOne(ExecutorConformance):
    at_once = False

    def executor(self):
        return faulty.OneByOne()


class TestStrategy(RetryConformance):
    def strategy(self):
        return faulty.Strategy()


class TestManager(ContextConformance):
    keeps_task = True
    undoes = False

    def manager(self):
        return faulty.Manager()


class TestNoManager(ContextConformance):
    reduces = False

    def manager(self):
        return faulty.NeverMakesRoom()


class TestGuard(GuardConformance):
    denied_call = ("danger", {"path": "/"})
    denied_input = "a secret"
    denied_answer = "the secret"
    denied_result = "some secret"

    def guard(self):
        return faulty.Guard()


class TestStorage(StorageConformance):
    @pytest.fixture
    def storage(self):
        return faulty.Storage()

    def reopened(self, storage):
        return type(storage)(storage.items)

    @contextlib.contextmanager
    def full(self, storage):
        storage.full = True
        yield
        storage.full = False

    def damage(self, storage, key):
        name, data, size = storage.items[storage.name(key)]
        storage.items[storage.name(key)] = (name, data[: size // 2], size)


# -- the tests can fail ------------------------------------------------------------------------------------------------

CASES = [
    (TestTool, "tool", faulty.BadName, "test_models_can_be_told_of_it"),
    (TestTool, "tool", faulty.OtherName, "test_models_can_be_told_of_it"),
    (TestTool, "tool", faulty.NoJsonInItsSpec, "test_models_can_be_told_of_it"),
    (TestTool, "tool", faulty.ChangingSpec, "test_models_can_be_told_of_it"),
    (TestTool, "tool", faulty.OddEffect, "test_what_a_crash_means_for_it_is_one_of_the_known"),
    (TestTool, "tool", faulty.ReturnsText, "test_its_answer_is_a_tool_result"),
    (TestTool, "tool", faulty.WrongId, "test_its_answer_is_a_tool_result"),
    (TestTool, "tool", faulty.NoJsonInItsResult, "test_its_answer_is_a_tool_result"),
    (TestTool, "tool", faulty.WritesToItsInput, "test_its_input_is_not_written_to"),
    (TestTool, "tool", faulty.OneResultForAll, "test_calls_at_once_are_kept_apart"),
    (TestTool, "tool", faulty.OneContentForAll, "test_calls_at_once_are_kept_apart"),
    (TestTool, "tool", faulty.RemembersTheId, "test_calls_at_once_are_kept_apart"),
    (TestTool, "tool", faulty.OneResultForAll, "test_an_answer_is_not_changed_by_the_next_call"),
    (TestTool, "tool", faulty.BelongsToALoop, "test_one_object_serves_event_loops_in_a_row"),
    (TestTool, "tool", faulty.NotDirect, "test_it_can_be_called_directly"),
    (TestTool, "tool", faulty.SucceedsAlways, "test_wrong_input_is_an_error_result"),
    (TestTool, "tool", faulty.WaitsForEver, "test_cancelling_ends_it"),
    (TestProvider, "provider", faulty.BringsNone, "test_it_brings_tools"),
    (TestProvider, "provider", faulty.BringsTwice, "test_it_brings_tools"),
    (TestProvider, "provider", faulty.BrokenTools, "test_its_tools_work"),
    (TestProvider, "provider", faulty.BringsOnce, "test_each_consumer_gets_the_same_tools"),
    (TestProvider, "provider", faulty.ClosesAtOnce, "test_it_stays_open_for_those_who_are_left"),
    (TestProvider, "provider", faulty.ClosesAtOnce, "test_it_closes_after_the_last"),
    (TestProvider, "provider", faulty.NeverCloses, "test_it_closes_after_the_last"),
    (TestProvider, "provider", faulty.OpensEarly, "test_it_closes_when_nothing_was_loaded"),
    (TestProvider, "provider", faulty.OpensOnce, "test_it_opens_again"),
    (TestExecutor, "executor", faulty.InTheOrderOfTheirEnd, "test_each_call_is_run_once_and_answered_in_order"),
    (TestExecutor, "executor", faulty.RunsTwice, "test_each_call_is_run_once_and_answered_in_order"),
    (TestExecutor, "executor", faulty.RunsTwice, "test_a_single_call_is_run"),
    (TestExecutor, "executor", faulty.OneByOne, "test_how_many_run_at_once"),
    (TestOneByOne, "executor", faulty.Executor, "test_how_many_run_at_once"),
    (TestOneByOne, "executor", faulty.Backwards, "test_how_many_run_at_once"),
    (TestExecutor, "executor", faulty.PassesOverTheChain, "test_a_tool_that_fails_does_not_stop_the_others"),
    (TestExecutor, "executor", faulty.PassesOverTheChain, "test_what_a_hook_raises_goes_to_the_caller"),
    (TestExecutor, "executor", faulty.RunsTwice, "test_a_question_keeps_what_the_others_came_to"),
    (TestExecutor, "executor", faulty.LeavesTasks, "test_cancelling_ends_all"),
    (TestExecutor, "executor", faulty.LeavesTasks, "test_a_caller_that_goes_away_leaves_nothing_running"),
    (TestExecutor, "executor", faulty.RemembersTheBatch, "test_one_executor_serves_two_agents_at_once"),
    (TestStrategy, "strategy", faulty.NeverRepeats, "test_a_call_that_failed_for_now_is_repeated"),
    (TestStrategy, "strategy", faulty.RepeatsAll, "test_a_call_that_failed_for_good_is_not"),
    (TestStrategy, "strategy", faulty.NeverGivesUp, "test_it_gives_up"),
    (TestStrategy, "strategy", faulty.Overflows, "test_every_delay_is_a_number_of_seconds"),
    (TestStrategy, "strategy", faulty.Impatient, "test_it_is_not_sooner_than_the_provider_asks"),
    (TestStrategy, "strategy", faulty.Credulous, "test_odd_wishes_of_a_provider_do_no_harm"),
    (TestStrategy, "strategy", faulty.CountsItself, "test_each_turn_is_counted_anew"),
    (TestStrategy, "strategy", faulty.WaitsItself, "test_cancelling_ends_the_wait"),
    (TestManager, "manager", faulty.DropsTheNewest, "test_the_newest_message_is_sent"),
    (TestManager, "manager", faulty.NeverMakesRoom, "test_it_makes_room"),
    (TestManager, "manager", faulty.ForgetsTheTask, "test_the_task_stays"),
    (TestManager, "manager", faulty.ForgetsPins, "test_pinned_messages_stay"),
    (TestNoManager, "manager", faulty.DropsAllAtLast, "test_what_never_fits_is_an_error"),
    (TestManager, "manager", faulty.MixesAgents, "test_one_manager_serves_two_agents"),
    (TestGuard, "guard", faulty.RefusesAll, "test_what_is_allowed_passes_as_it_is"),
    (TestGuard, "guard", faulty.MarksAnswers, "test_what_is_allowed_passes_as_it_is"),
    (TestGuard, "guard", faulty.AnswersTrue, "test_it_answers_verdicts"),
    (TestGuard, "guard", faulty.GuidesTools, "test_it_answers_verdicts"),
    (TestGuard, "guard", faulty.ReplacesByText, "test_it_answers_verdicts"),
    (TestGuard, "guard", faulty.WritesToSubjects, "test_it_does_not_write_to_what_it_is_shown"),
    (TestGuard, "guard", faulty.WritesToAnswers, "test_it_does_not_write_to_what_it_is_shown"),
    (TestGuard, "guard", faulty.LetsAllPass, "test_a_denied_call_does_not_run"),
    (TestGuard, "guard", faulty.LooksAtTheNameAskedFor, "test_a_denied_call_does_not_run_in_the_place_of_another"),
    (TestGuard, "guard", faulty.OnlyModels, "test_a_denied_call_does_not_run_directly"),
    (TestGuard, "guard", faulty.NotBefore, "test_a_denied_prompt_is_not_sent"),
    (TestGuard, "guard", faulty.NotAfterModels, "test_a_denied_answer_does_not_get_out"),
    (TestGuard, "guard", faulty.NotAfterTools, "test_a_denied_result_does_not_get_out"),
    (TestGuard, "guard", faulty.OnceRefusedAlwaysRefused, "test_one_guard_serves_two_agents_at_once"),
    (TestStorage, "storage", faulty.NoList, "test_it_has_the_methods"),
    (TestStorage, "storage", faulty.StripsBytes, "test_what_was_written_is_read"),
    (TestStorage, "storage", faulty.RaisesKeyErrors, "test_what_is_not_there_is_none"),
    (TestStorage, "storage", faulty.AlwaysRemoved, "test_what_is_not_there_is_none"),
    (TestStorage, "storage", faulty.SafeNames, "test_any_text_is_a_key_of_its_own"),
    (TestStorage, "storage", faulty.KeepsTheFirst, "test_writing_again_replaces"),
    (TestStorage, "storage", faulty.KeepsTheObject, "test_what_was_given_may_change_afterwards"),
    (TestStorage, "storage", faulty.RemovesByPrefix, "test_removing_removes_one"),
    (TestStorage, "storage", faulty.AlwaysRemoved, "test_removing_removes_one"),
    (TestStorage, "storage", faulty.Unsorted, "test_keys_are_listed"),
    (TestStorage, "storage", faulty.ListsContaining, "test_keys_are_listed"),
    (TestStorage, "storage", faulty.MixesWrites, "test_what_is_written_at_once_is_one_or_the_other"),
    (TestStorage, "storage", faulty.OneLoop, "test_it_serves_event_loops_in_a_row_and_at_once"),
    (TestStorage, "storage", faulty.NotDurable, "test_what_is_durable_is_there_again"),
    (TestStorage, "storage", faulty.EmptiesFirst, "test_a_failed_write_changes_nothing"),
    (TestStorage, "storage", faulty.RaisesOsErrors, "test_a_failed_write_changes_nothing"),
    (TestStorage, "storage", faulty.NeverLooks, "test_damage_is_told"),
]


@pytest.mark.parametrize(("case", "role", "made", "test"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_a_faulty_one_fails(case, role, made, test, monkeypatch, no_plugins_env):
    discovery.refresh()
    monkeypatch.setattr(common, "SECONDS", 1.0)
    monkeypatch.setattr(common, "STEPS", 200)
    example = case()
    body = getattr(example, test)
    given = {role: made()} if role in inspect.signature(body).parameters else {}
    if not given:
        setattr(example, role, made)

    async def outcome():
        await body(**given)

    with pytest.raises((Exception, pytest.fail.Exception)) as caught:
        asyncio.run(outcome()) if inspect.iscoroutinefunction(body) else body(**given)

    assert not isinstance(caught.value, NotImplementedError | AttributeError)


def test_every_test_of_every_role_has_somebody_who_fails_it():
    """But for those that only a whole kernel could fail."""
    roles = (TestTool, TestProvider, TestExecutor, TestStrategy, TestManager, TestGuard, TestStorage)
    names = {(case.__mro__[1].__name__, name) for case in roles for name in dir(case) if name.startswith("test_")}
    failed = {(case.__mro__[1].__name__, test) for case, _, _, test in CASES}

    assert names - failed == {("ContextConformance", "test_a_long_conversation_stays_valid")}


@pytest.mark.parametrize(
    ("role", "missing"),
    [
        (ExecutorConformance, "executor"),
        (RetryConformance, "strategy"),
        (ContextConformance, "manager"),
        (GuardConformance, "guard"),
    ],
)
def test_what_a_subclass_has_to_give_is_said(role, missing):
    with pytest.raises(NotImplementedError, match=rf"Conformance: give a method {missing}\(\)"):
        getattr(role(), missing)()
