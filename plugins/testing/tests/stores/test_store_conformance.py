"""The store in memory, and a small one of files, held to what every store keeps; faulty ones are found out."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import pathlib

import pytest

from ropewalk_testing import MemoryLogStore, StoreConformance

spec = importlib.util.spec_from_file_location("faulty_stores", pathlib.Path(__file__).parent / "faulty_stores.py")
faulty = importlib.util.module_from_spec(spec)
spec.loader.exec_module(faulty)
LineStore = faulty.line_store.LineStore


class TestMemoryStore(StoreConformance):
    shared = False

    @pytest.fixture
    def store(self):
        return MemoryLogStore()

    def reopened(self, store):
        return store.reopened()

    def raw(self, store):
        return "\n".join(store.lines()).encode()


class TestLineStore(StoreConformance):
    processes_write = 20

    @pytest.fixture
    def store(self, tmp_path):
        return LineStore(tmp_path)

    def reopened(self, store):
        return LineStore(store.folder)

    def tear(self, store, key):
        store.tear(key)

    def raw(self, store):
        return b"".join(path.read_bytes() for path in store.folder.glob("*.log"))

    @contextlib.contextmanager
    def broken(self, store):
        store.full = True
        yield
        store.full = False


# -- the tests can fail --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("store", "test", "given"),
    [
        (faulty.MakesLogs, "test_a_log_that_was_never_written_is_not_there", {}),
        (faulty.TurnsRound, "test_records_come_back_in_order", {}),
        (faulty.RoundsTimes, "test_every_part_of_a_record_is_kept", {}),
        (faulty.ForgetsPaths, "test_every_part_of_a_record_is_kept", {}),
        (faulty.Ascii, "test_any_text_is_kept", {"text": "\U0001f600"}),
        (faulty.BytesAsText, "test_any_value_is_kept", {"value": b"\x00"}),
        (faulty.KnownFieldsOnly, "test_unknown_fields_are_kept", {}),
        (faulty.OneName, "test_hostile_ids_are_kept_apart_or_refused", {}),
        (faulty.RaisesValueErrors, "test_hostile_ids_are_kept_apart_or_refused", {}),
        (faulty.ListsAll, "test_logs_are_listed", {}),
        (faulty.Nameless, "test_its_repr_says_what_store_it_is", {}),
        (faulty.DeletesOne, "test_a_session_is_deleted_whole", {}),
        (faulty.DeletesUnderWriters, "test_a_log_that_is_being_written_is_not_deleted", {}),
        (faulty.Unfenced, "test_another_position_is_refused", {}),
        (faulty.MakesAnew, "test_a_new_log_begins_at_0", {}),
        (faulty.NeverAgain, "test_the_same_write_again_is_no_error", {}),
        (faulty.OnlyTheSame, "test_the_same_write_again_with_more_behind_adds_the_rest", {}),
        (faulty.AnyOfThatLength, "test_other_records_at_a_known_position_are_a_conflict", {}),
        (faulty.Counts, "test_a_writer_from_before_a_replacement_is_refused", {}),
        (faulty.NoLeases, "test_a_log_has_one_lease", {}),
        (faulty.StaleRelease, "test_a_log_has_one_lease", {}),
        (faulty.SessionLeases, "test_leases_are_per_log", {}),
        (faulty.Races, "test_writers_in_threads_lose_nothing", {}),
        (faulty.RecordByRecord, "test_a_reader_sees_whole_writes", {}),
        (faulty.EmptiesFirst, "test_a_log_can_be_read_while_it_is_replaced", {}),
        (faulty.SkipsNewer, "test_a_log_of_a_newer_version_is_refused", {}),
        (faulty.KeepsOldLines, "test_a_replacement_leaves_nothing_of_what_was", {}),
        (faulty.KeepsOldLines, "test_what_a_guardrail_redacts_is_nowhere", {"of_a_tool": True}),
        (faulty.KeepsOldLines, "test_what_a_guardrail_redacts_is_nowhere", {"of_a_tool": False}),
        (faulty.LosesState, "test_an_agent_is_restored_as_it_was", {"retention": None}),
        (faulty.LosesPauses, "test_a_paused_run_goes_on_in_another_agent", {}),
        (faulty.LosesState, "test_edits_between_runs_are_restored", {}),
        (faulty.Unfenced, "test_the_second_of_two_writers_is_told", {}),
        (faulty.OneAgent, "test_agents_of_a_session_are_told_apart", {}),
    ],
)
def test_a_faulty_store_fails(store, test, given, tmp_path):
    fails(TestMemoryStore(), test, store(), {**given, "tmp_path": tmp_path})


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (faulty.ToldNothing, "test_a_torn_write_leaves_the_good_beginning"),
        (faulty.StumblesOverTornLines, "test_a_torn_write_leaves_the_good_beginning"),
        (faulty.StumblesOverTornLines, "test_a_torn_first_write_leaves_an_empty_log"),
        (faulty.StumblesOverTornLines, "test_a_torn_log_can_be_replaced"),
        (faulty.WritesWhenFull, "test_a_failed_write_leaves_nothing"),
        (faulty.RaisesOSErrors, "test_a_failed_write_leaves_nothing"),
        (faulty.LeasesInMemory, "test_another_process_cannot_take_the_lease"),
        (faulty.LeasesThatStay, "test_the_lease_of_a_process_that_died_is_free"),
        (faulty.Unguarded, "test_writers_in_processes_lose_nothing"),
        (faulty.Unguarded, "test_writers_in_threads_lose_nothing"),
    ],
)
def test_a_faulty_store_of_files_fails(store, test, tmp_path):
    class Case(TestLineStore):
        def reopened(self, opened):
            return store(opened.folder)

    fails(Case(), test, store(tmp_path), {})


def fails(case, test, store, given):
    run = getattr(case, test)
    wanted = inspect.signature(run).parameters
    given = {name: value for name, value in given.items() if name in wanted}
    faults = (Exception, pytest.fail.Exception)
    with pytest.raises(faults) as caught:
        asyncio.run(run(store, **given)) if inspect.iscoroutinefunction(run) else run(store, **given)

    assert not isinstance(caught.value, TypeError | NameError | pytest.skip.Exception)
