"""Writes docs/hooks/*.md: one page per theme, from the specifications' docstrings and the examples beside the pages.

python docs/generate_hooks.py           writes the pages
python docs/generate_hooks.py --check   fails when one of them is not what would be written
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any, Final

import ropewalk
from ropewalk.kits.hooks.signatures import HOOKS, SPEC_MARK, HookSpec
from ropewalk.specs import SPECS

FOLDER: Final = Path(__file__).resolve().parent / "hooks"
EXAMPLES: Final = FOLDER / "examples"
NOTE: Final = "<!-- Written by docs/generate_hooks.py from the docstrings of ropewalk.specs: change those. -->\n"
SECTIONS: Final = {"Args": "Arguments", "Returns": "Returns", "Raises": "Raises"}
WIDTH: Final = 120
_ENTRY: Final = re.compile(r"(\*{0,2}\w+): (.*)", re.DOTALL)

HOW_THEY_ARE_CALLED: Final = """
A hook is implemented by a method with `@hookimpl` of a plugin class; it takes any of the hook's arguments, by name.

* **awaited** hooks are written with `async def`, **synchronous** ones with `def`.
* Of a hook whose **first answer** counts, plugins are asked in order until one returns something other than None.
* A **chain** wraps a step of the kernel: `call_next(...)` runs the rest of it, what is returned goes outwards.
* None means "no opinion", in every hook but a chain.

Order: by tier (`policy`, `normal`, `observer`), then by the plugin's `order` (lower first), then `tryfirst` and
`trylast`, then an agent's own plugins in their order before those that are active unasked. The first is the outermost
of a chain.
`ropewalk plugins explain <hook>` shows it for an environment.
"""


def pages() -> dict[Path, str]:
    """Every page with its text."""
    themes = {_theme(group): group for group in SPECS}
    return {
        FOLDER / "README.md": _index(themes),
        **{FOLDER / f"{theme}.md": _page(theme, group) for theme, group in themes.items()},
    }


def hooks_of(group: type) -> list[str]:
    """The hooks of a theme, in the order of their declaration."""
    return [name for name in vars(group) if name in HOOKS]


def _theme(group: type) -> str:
    return group.__module__.rpartition(".")[2]


def _index(themes: dict[str, type]) -> str:
    lines = [NOTE, "# Hooks", HOW_THEY_ARE_CALLED, "| hook | kind | |", "|---|---|---|"]
    for theme, group in themes.items():
        for name in hooks_of(group):
            function = vars(group)[name]
            lines.append(
                f"| [`{name}`]({theme}.md#{name}) | {_kind(HOOKS[name], function)} | {_first_line(function)} |"
            )

    return "\n".join([*lines, ""])


def _page(theme: str, group: type) -> str:
    parts = [NOTE, f"# Hooks: {theme}", "", _doc(group), ""]
    for name in hooks_of(group):
        parts += _hook(name, vars(group)[name])

    return "\n".join(parts)


def _hook(name: str, function: Any) -> list[str]:
    spec = HOOKS[name]
    return [
        f"## {name}",
        "",
        f"*{_kind(spec, function)}*",
        "",
        "```python",
        *_imports(function),
        _signature(function),
        "```",
        "",
        *_sections(_doc(function)),
        "Example:",
        "",
        "```python",
        _example(name),
        "```",
        "",
    ]


def _kind(spec: HookSpec, function: Any) -> str:
    awaited = "awaited" if spec.is_async else "synchronous"
    if spec.is_chain:
        return f"{awaited}, chain"

    return f"{awaited}, {'first answer' if getattr(function, SPEC_MARK)['firstresult'] else 'all'}"


def _signature(function: Any) -> str:
    """The declaration with its types, in one line or one argument a line."""
    start = f"{'async ' if inspect.iscoroutinefunction(function) else ''}def {function.__name__}"
    signature = inspect.signature(function)
    arguments = [f"{name}: {each.annotation}" for name, each in signature.parameters.items() if name != "self"]
    line = f"{start}({', '.join(['self', *arguments])}) -> {signature.return_annotation}: ..."
    if len(line) <= WIDTH:
        return line

    rows = "".join(f"    {each},\n" for each in ["self", *arguments])
    return f"{start}(\n{rows}) -> {signature.return_annotation}: ..."


def _imports(function: Any) -> list[str]:
    """Where the types of a declaration come from, but for Agent, and two empty lines."""
    annotations = " ".join(str(each) for each in function.__annotations__.values())
    words = set(re.findall(r"\w+", annotations))
    places: dict[str, list[str]] = {}
    for name, module in _imported(function.__module__).items():
        if name in words - {"Agent"} and module.partition(".")[0] == "ropewalk":
            places.setdefault("ropewalk" if hasattr(ropewalk, name) else module, []).append(name)

    lines = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(places.items())]
    return [*lines, "", ""] if lines else []


def _imported(module: str) -> dict[str, str]:
    """The names that a module imports, for its types too, and from where."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in nodes for alias in node.names}


def _example(name: str) -> str:
    """The example of a hook, without its docstring and what every module has."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    return text.partition("from __future__ import annotations\n")[2].strip()


def _doc(documented: Any) -> str:
    text = inspect.getdoc(documented)
    if not text:
        raise SystemExit(f"{documented!r} has no docstring: the pages are made of them")

    return text


def _first_line(function: Any) -> str:
    return " ".join(_doc(function).partition("\n\n")[0].split())


def _sections(text: str) -> list[str]:
    """A Google docstring as Markdown: paragraphs, then lists."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        head, _, body = block.partition(":\n")
        if head not in SECTIONS:
            lines += [block, ""]
            continue

        lines += [f"{SECTIONS[head]}:", ""]
        lines += [f"* {_entry(entry, named=head != 'Returns')}" for entry in _entries(body)]
        lines.append("")

    return lines


def _entries(body: str) -> list[str]:
    """The entries of a section; what is indented further goes on with the one before."""
    entries: list[str] = []
    for line in inspect.cleandoc(f"\n{body}").splitlines():
        if entries and (line.startswith(" ") or not _ENTRY.match(line)):
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line)

    return entries


def _entry(text: str, *, named: bool) -> str:
    match = _ENTRY.fullmatch(text) if named else None
    return f"`{match[1]}`: {match[2]}" if match else text


def main(arguments: list[str]) -> int:
    """Writes the pages, or says which of them are out of date."""
    wanted = pages()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in FOLDER.glob("*.md") if path not in wanted]
    for path in stale:
        print(path.name)
        if "--check" not in arguments:
            path.write_text(wanted[path], encoding="utf-8") if path in wanted else path.unlink()

    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
