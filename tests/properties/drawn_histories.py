"""Conversations for managers of the context, and the tool that they use."""

from __future__ import annotations

from hypothesis import strategies as st

from ropewalk import tool
from ropewalk.kits.context import pinned_as


@tool
async def look(size: int) -> str:
    """Looks.

    Args:
        size: How much there is to see.
    """
    return "x" * size


@st.composite
def histories(draw, sizes, answers=None):
    """A conversation that ends in an answer, some of it pinned; it may begin with the assistant.

    `sizes` of prompts and results; `answers` has those of the answers, which are short without.
    """
    messages = []
    for exchange in range(draw(st.integers(0, 6))):
        if exchange or draw(st.integers(0, 5)):
            messages.append({"role": "user", "content": [{"text": f"q{exchange} " + "q" * draw(sizes)}]})

        for number in range(draw(st.integers(0, 3))):
            names = [f"t{exchange}-{number}-{i}" for i in range(draw(st.integers(1, 2)))]
            uses = [{"toolUse": {"toolUseId": name, "name": "look", "input": {"size": 1}}} for name in names]
            results = [
                {"toolResult": {"toolUseId": name, "status": "success", "content": [{"text": "r" * draw(sizes)}]}}
                for name in names
            ]
            messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]

        more = " " + "a" * draw(answers) if answers is not None else ""
        messages.append({"role": "assistant", "content": [{"text": f"a{exchange}{more}"}]})

    pins = draw(st.sets(st.integers(0, max(len(messages) - 1, 0)), max_size=3)) if messages else set()
    return [pinned_as(message) if place in pins else message for place, message in enumerate(messages)]
