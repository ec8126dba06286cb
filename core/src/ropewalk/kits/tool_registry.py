"""The tools of one agent, by name."""

from __future__ import annotations

from ropewalk.errors import ToolDefinitionError
from ropewalk.kits.messages.rules import is_legal_tool_name
from ropewalk.tools import Tool
from ropewalk.types import ToolSpec


class ToolRegistry:
    """Tools under their names, and the specs that models are sent."""

    __slots__ = ("_by_name", "_folded", "_specs")

    def __init__(self) -> None:
        self._by_name: dict[str, Tool] = {}
        self._folded: dict[str, str] = {}
        self._specs: tuple[ToolSpec, ...] | None = None

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._by_name.get(name)

    def find(self, name: str) -> Tool | None:
        """The tool of that name, or of the name that differs only by `-` and `_`."""
        return self._by_name.get(name) or self._by_name.get(self._folded.get(name.replace("-", "_"), ""))

    @property
    def names(self) -> list[str]:
        """Names in the order of registration."""
        return list(self._by_name)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What models are told, in the order of registration.

        Raises:
            ToolDefinitionError: A tool's spec cannot be made or has not the shape of one.
        """
        if self._specs is None:
            self._specs = tuple(_checked_spec(name, tool) for name, tool in self._by_name.items())

        return self._specs

    def replace(self, tool: Tool) -> None:
        """Puts a tool in the place of the one of its name; registers it when there is none."""
        if tool.tool_name in self._by_name:
            self._by_name[tool.tool_name] = tool
            self._specs = None
        else:
            self.add(tool)

    def remove(self, name: str) -> None:
        """Takes a tool away, if it is there."""
        if self._by_name.pop(name, None) is not None:
            del self._folded[name.replace("-", "_")]
            self._specs = None

    def copy(self) -> ToolRegistry:
        """A registry of the same tools, to be changed on its own."""
        other = ToolRegistry()
        other._by_name, other._folded, other._specs = dict(self._by_name), dict(self._folded), self._specs
        return other

    def add(self, tool: Tool) -> None:
        """Registers a tool; the same object again is no change.

        Raises:
            ToolDefinitionError: The name is illegal or taken, or differs from a taken one only by `-` and `_`.
        """
        name = tool.tool_name
        if not is_legal_tool_name(name):
            raise ToolDefinitionError(
                f"tool name {name!r} is not allowed: "
                "use 1 to 64 of the letters a-z A-Z, digits, _ and -, as providers demand"
            )

        folded = name.replace("-", "_")
        other = self._folded.get(folded)
        if other is not None:
            if self._by_name[other] is tool:
                return

            same = "is taken" if other == name else f"differs from {other!r} only by - and _"
            raise ToolDefinitionError(f"tool name {name!r} {same}: give one of the two tools another name")

        self._by_name[name] = tool
        self._folded[folded] = name
        self._specs = None


def is_tool(value: object) -> bool:
    """Whether the value has what the kernel needs of a tool."""
    return not isinstance(value, type) and hasattr(value, "tool_name") and callable(getattr(value, "invoke", None))


def _checked_spec(name: str, tool: Tool) -> ToolSpec:
    """The spec under the name that the tool is registered by: what a model is told is what is found."""
    spec = tool.tool_spec
    schema = spec.get("inputSchema") if isinstance(spec, dict) else None
    if (
        not isinstance(schema, dict)
        or not isinstance(schema.get("json"), dict)
        or not isinstance(spec.get("description"), str)
    ):
        raise ToolDefinitionError(
            f"tool {name!r} has a spec of the wrong shape: "
            'use {"name", "description", "inputSchema": {"json": {...}}}'
        )

    return spec if spec.get("name") == name else {**spec, "name": name}
