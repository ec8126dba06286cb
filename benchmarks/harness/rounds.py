"""Interleaved rounds: in every round each case meets all peers, one right after the other."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Self

from harness.plan import Case
from harness.results import Results
from harness.workers import Peer, Worker, ask_fresh, time_import


class Bench:
    """One run of the benchmark. Closing it ends its worker processes."""

    def __init__(self, peers: Iterable[Peer], *, quick: bool = False) -> None:
        self._quick = quick
        self._closing = ExitStack()
        self.peers = list(peers)
        self.results = Results()
        self._workers = {peer.name: self._closing.enter_context(Worker(peer)) for peer in self.peers}
        self._information = {name: worker.ask("information") for name, worker in self._workers.items()}

    @property
    def versions(self) -> dict[str, str | None]:
        """The version of every peer that has one."""
        return {name: known.get("version") for name, known in self._information.items()}

    def run(self, cases: list[Case], rounds: int) -> None:
        """Runs the cases so many times."""
        if any(case.case == "import" for case in cases):
            for peer in self.peers:
                self._import(peer)  # writes the bytecode

        for number in range(rounds):
            for case in cases:
                if number < (case.most_rounds or rounds):
                    self._round(case, number)

    def _round(self, case: Case, number: int) -> None:
        # Who goes first changes with the round: the first one also wakes the processor and the caches.
        peers = self.peers if number % 2 == 0 else self.peers[::-1]
        for peer in peers:
            numbers = self._numbers(case, peer)
            self.results.add(case.label, peer.name, numbers)
            shown = {key: numbers[key] for key in ("cpu_us", "traced_kib_per_agent", "error", "skip") if key in numbers}
            print(time.strftime("%T"), f"round {number + 1}", case.label, peer.name, shown, file=sys.stderr, flush=True)

    def _numbers(self, case: Case, peer: Peer) -> dict[str, Any]:
        if peer.name in case.without:
            return {"skip": case.without[peer.name]}

        if case.case == "import":
            return self._import(peer)

        arguments = case.arguments_for(quick=self._quick)
        if case.fresh:
            return ask_fresh(peer, case.case, arguments)

        return self._workers[peer.name].ask(case.case, arguments)

    def _import(self, peer: Peer) -> dict[str, Any]:
        known = self._information[peer.name]
        return time_import(peer, known["import"]) if "import" in known else known

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()
