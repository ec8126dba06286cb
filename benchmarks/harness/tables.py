"""Reports in Markdown."""

from __future__ import annotations

from typing import Any, Final

from harness import plan
from harness.bars import BARS, FLOOR, Bar, measured, verdict
from harness.results import Results

_TIME_UNITS: Final = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))
# group: title, and the metrics that are shown with their unit; times are in microseconds
TABLES: Final = {
    "import": ("Import", (("cpu_us", ""), ("wall_us", ""), ("modules", "modules"), ("resident_mib", "MiB"))),
    "construct": ("Construction", (("cpu_us", ""), ("wrap_tool_us", ""))),
    "memory": ("Memory an agent", (("traced_kib_per_agent", "KiB"), ("resident_kib_per_agent", "KiB"))),
    "cycle": ("One cycle: a model call and a tool call", (("cpu_us", ""), ("wall_us", ""))),
    "growth": (
        "One more cycle after so many messages, and the first turn of an agent that is given them",
        (("cpu_us", ""), ("wall_us", ""), ("first_turn_cpu_us", "")),
    ),
    "turn": (
        "One more turn (prompt, call, result, text) of an agent that has run before",
        (("cpu_us", ""), ("wall_us", "")),
    ),
    "stream": ("One streamed piece of text", (("cpu_us", ""), ("wall_us", ""))),
    "parallel": ("Parallel tools, ideal 10 ms", (("wall_us", ""), ("cpu_us", ""))),
    "concurrency": (
        "Concurrent agents, ideal 120 ms",
        (("wall_us", ""), ("cpu_us", ""), ("times_ideal", "x ideal"), ("growth_kib_per_agent", "KiB an agent")),
    ),
    "session": (
        "A session that is kept: turn 1,000, and opening a long conversation",
        (
            ("cpu_us", ""),
            ("extra_cpu_us", ""),
            ("cpu_late_to_early", "x turn 100"),
            ("bytes_late_to_early", "x turn 100"),
            ("wall_us", ""),
        ),
    ),
}


_METRICS: Final = {
    "cpu_us": "CPU",
    "wall_us": "wall",
    "times_ideal": "wall / ideal",
    "extra_cpu_us": "CPU more than without",
    "cpu_late_to_early": "CPU, turn 1,000 / turn 100",
    "bytes_late_to_early": "bytes, turn 1,000 / turn 100",
}


def report(results: Results, peers: list[str], versions: dict[str, str | None]) -> str:
    """Everything that was measured."""
    known = ", ".join(f"{peer} {versions[peer]}" for peer in peers if versions.get(peer))
    parts = [f"Versions: {known or 'none known'}. In brackets: the ratio to the floor, median of the rounds' ratios."]
    for group, (title, metrics) in TABLES.items():
        labels = [case.label for case in plan.PLAN if case.group == group and case.label in results.rounds]
        if labels:
            parts.append(f"### {title}\n\n" + _table(results, peers, labels, metrics))

    store = _store_table(results, peers)
    if store:
        parts.append(store)

    remarks = [
        f"- {label} / {peer}: {remark}"
        for label in results.rounds
        for peer in peers
        if (remark := results.remark(label, peer))
    ]
    if remarks:
        parts.append("### Left out or failed\n\n" + "\n".join(remarks))

    return "\n\n".join(parts)


def bars_table(results: Results) -> str:
    """Every bar with what was measured."""
    lines = [_row(["bar", "measured", "limit", "aim", "verdict"]), "|---" * 5 + "|"]
    for bar in BARS:
        value = measured(bar, results)
        shown = "-" if value is None else f"{value:.2f}{bar.unit}"
        aim = "" if bar.aim is None else f"{bar.aim:g}{bar.unit}"
        lines.append(_row([_bar_name(bar), shown, f"{bar.limit:g}{bar.unit}", aim, verdict(bar, results)]))

    return "### Bars for Ropewalk\n\n" + "\n".join(lines)


def _bar_name(bar: Bar) -> str:
    metric = _METRICS.get(bar.metric, "traced")
    other = {FLOOR: " / floor", "absolute": ""}.get(bar.against, f" / {bar.against}")
    return f"{bar.label}, {metric}{other}"


def _table(results: Results, peers: list[str], labels: list[str], metrics: tuple[tuple[str, str], ...]) -> str:
    lines = [_row(["what", *peers]), "|---" * (len(peers) + 1) + "|"]
    for label in labels:
        for metric, unit in metrics:
            name = metric.removesuffix("_us").removesuffix("_kib_per_agent").replace("_", " ")
            lines.append(_row([f"{label}: {name}", *(_cell(results, label, peer, metric, unit) for peer in peers)]))

    return "\n".join(lines)


def _cell(results: Results, label: str, peer: str, metric: str, unit: str) -> str:
    value = results.value(label, peer, metric)
    if value is None:
        return (results.remark(label, peer) or "-").split(":")[0]

    shown = f"{value:,.1f} {unit}" if unit else time_text(value)
    ratio = None if peer == FLOOR else results.ratio((label, peer), (label, FLOOR), metric)
    return shown if ratio is None else f"{shown} ({ratio:,.2f}x)"


def _store_table(results: Results, peers: list[str]) -> str | None:
    head = ["peer", "turn", "CPU a turn", "without a store", "bytes a turn", "files", "rows", "first turn resumed, CPU"]
    lines = []
    for peer in peers:
        stored, plain = (_marks(results, label, peer) for label in ("turns with a store", "turns without a store"))
        for turn, mark in stored.items():
            without = plain.get(turn, {}).get("cpu_us")
            lines.append(
                _row(
                    [
                        peer,
                        turn,
                        time_text(mark["cpu_us"]),
                        "-" if without is None else time_text(without),
                        f"{mark['bytes_per_turn']:,.0f}",
                        str(mark["files"]),
                        str(mark.get("rows") or "-"),
                        time_text(mark["resume_cpu_us"]),
                    ]
                )
            )

    if not lines:
        return None

    return "\n".join(["### Turns with a store\n", _row(head), "|---" * len(head) + "|", *lines])


def _marks(results: Results, label: str, peer: str) -> dict[str, dict[str, Any]]:
    """What was measured at some turns of a conversation, by turn."""
    return next((numbers["marks"] for numbers in results.of(label, peer) if "marks" in numbers), {})


def time_text(microseconds: float) -> str:
    """A duration with three digits and a unit."""
    for size, unit in _TIME_UNITS:
        if abs(microseconds) >= size:
            return f"{microseconds / size:.3g} {unit}"

    return f"{microseconds:.3f} us"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
