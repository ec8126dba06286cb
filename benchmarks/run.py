"""Runs the benchmark: `python benchmarks/run.py --help`. See README.md."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.bars import all_kept
from harness.environments import HERE, NAMES, peer_named
from harness.plan import GROUPS, chosen
from harness.rounds import Bench
from harness.tables import bars_table, report

_ROUNDS: Final = 5


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description="Measures Ropewalk against a loop without a framework, and its peers.")
    made.add_argument(
        "--peers", default=",".join(HERE), help=f"comma-separated, of: {', '.join(NAMES)}; default: %(default)s"
    )
    made.add_argument("--cases", default=",".join(GROUPS), help="comma-separated; default: %(default)s")
    made.add_argument("--rounds", type=int, default=_ROUNDS, help="interleaved rounds; default: %(default)s")
    made.add_argument("--quick", action="store_true", help="one short round: shows that it works, not how fast it is")
    made.add_argument("--check", action="store_true", help="exit with 1 when a bar is missed")
    made.add_argument("--out", type=Path, metavar="FILE", help="also write every round's numbers, as JSON")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs, prints the report to stdout and the progress to stderr; gives the exit code."""
    given = parser().parse_args(arguments)
    if given.rounds < 1:
        parser().error("--rounds must be at least 1")

    names = list(dict.fromkeys(given.peers.split(",")))
    try:
        cases = chosen(given.cases.split(","))
        peers = [peer_named(name) for name in names]
    except ValueError as error:
        parser().error(str(error))

    with Bench(peers, quick=given.quick) as bench:
        bench.run(cases, 1 if given.quick else given.rounds)

    if given.out is not None:
        kept = {"python": platform.python_version(), "versions": bench.versions, "rounds": bench.results.rounds}
        given.out.write_text(json.dumps(kept, indent=1), encoding="utf-8")

    print(report(bench.results, names, bench.versions))
    if "ropewalk" in names and "floor" in names:
        print("\n" + bars_table(bench.results))

    return int(bool(bench.results.failed) or (given.check and not all_kept(bench.results)))


if __name__ == "__main__":
    sys.exit(main())
