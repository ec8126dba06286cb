"""The pages point at things that exist."""

from __future__ import annotations

import re
from urllib.parse import unquote

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages(root):
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "contrib").rglob("*.md")]
    return [*found, *root.glob("core/*.md"), *root.glob("plugins/*/*.md")]


def dead_links(page):
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target and ":" not in target]
    return [target for target in targets if not (page.parent / unquote(target)).exists()]


def test_every_relative_link_leads_somewhere(root):
    assert {str(page.relative_to(root)): dead for page in pages(root) if (dead := dead_links(page))} == {}


def test_a_dead_link_would_be_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](page.md#part) [b](gone.md) [c](https://example.org/x)")
    assert dead_links(page) == ["gone.md"]


def test_every_decision_is_listed_and_numbered_once(root):
    folder = root / "docs" / "decisions"
    decisions = sorted(path.name for path in folder.glob("[0-9]*.md") if not path.name.startswith("0000"))
    assert [name[:4] for name in decisions] == [f"{number:04}" for number in range(1, len(decisions) + 1)]
    assert LINK.findall((folder / "README.md").read_text()) == decisions


def test_every_hook_stands_in_the_architecture_page(root):
    specs = (root / "core" / "src" / "ropewalk" / "specs").glob("*.py")
    hooks = {name for path in specs for name in re.findall(r"@hookspec.*\n\s+(?:async )?def (\w+)", path.read_text())}
    text = (root / "docs" / "architecture.md").read_text()
    assert hooks
    assert {hook for hook in hooks if f"`{hook}`" not in text} == set()


def test_the_architecture_page_lists_every_module_of_the_kernel_and_every_kit(root):
    kernel = root / "core" / "src" / "ropewalk"
    text = (root / "docs" / "architecture.md").read_text()
    tables = text[text.index("| part of the kernel |") : text.index("## Hooks")]
    named = {name.rstrip("/") for name in re.findall(r"`([^`]+)`", tables)}

    def modules(folder, prefix=""):
        entries = [*folder.glob("*.py"), *(path.parent for path in folder.glob("*/__init__.py"))]
        return {prefix + path.stem for path in entries if not path.stem.startswith("__")}

    wanted = modules(kernel) | modules(kernel / "loop", "loop/") | modules(kernel / "kits", "kits/")
    assert named == wanted - {"loop", "kits"}
