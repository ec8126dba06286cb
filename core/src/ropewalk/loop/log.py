"""Where a run joins its agent's log, and leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk.kits.log.standing import Standing

if TYPE_CHECKING:
    from ropewalk.run import Run


async def begin_log(run: Run) -> None:
    """Locks the history, and brings the log to where the agent is: what its caller changed since the last run.

    Raises:
        Exception: Records of an earlier run still cannot be written.
        HistoryError: The caller put something into `agent.messages` that is no message.
    """
    agent, journal, history = run.agent, run.journal, run.history
    if journal is None or history is not agent.history:
        history.begin_run(None)
        return

    log = agent.log = agent.log or Standing()
    await log.write_leftovers()
    if log.agrees:
        history.begin_run(journal)
        for change in log.changes:
            journal.add("state_changed", change)
    else:
        history.begin_run(None)
        history.journal = journal
        for cell, state in agent.states().items():
            log.follow(cell, state)

        journal.add("snapshot_loaded", agent.log_data())
        log.agrees = True

    log.changes, log.journal = [], journal


async def end_log(run: Run) -> None:
    """Unlocks the history, writes what runs beside this one have left in it, and remembers what was not written."""
    late = run.history.end_run(paused=run.agent.suspension is not None)
    log, journal = run.agent.log, run.journal
    if log is None or journal is None or log.journal is not journal:
        return

    log.journal = None
    try:
        if late:
            await run.commit()
    finally:
        if not journal.path and journal.pending:
            log.unwritten = journal
