#!/usr/bin/env python3
"""Runs this repository from a plain checkout: needs Python 3.11 with pip and venv, nothing else.

    python3 dev.py demo [--check]                      an agent on an embedded model answers a question on this code
    python3 dev.py test [--services] [pytest args ...] every test of the kernel and the plugins
    python3 dev.py setup                               only the environment that both run in
    python3 dev.py packages                            writes the lists of packages, after one was added or removed

The environment is `.venv` beside this file, or the active virtual environment when that one is still empty. It is
filled once, and again only after a pyproject.toml or requirements-dev.txt has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent
OWN_VENV: Final = ROOT / ".venv"
STAMP: Final = "ropewalk-dev-stamp"
SHIPPED_WITH_VENV: Final = {"pip", "setuptools", "wheel"}
# Preinstalled, so that pip need not build an environment for each of the packages: 23 s instead of 90.
BUILD_TOOLS: Final = ("hatchling>=1.26", "editables>=0.5")

# Each file of tests goes to one process: fixtures of a module, such as a loaded model, are then made once.
SPREAD: Final = ("-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder")

DEMO_TOOLS: Final = "examples/repo_tools.py"
DEMO_MODEL: Final = "local:qwen2.5-coder-1.5b"
DEMO_PROMPT: Final = (
    "Find the file under core/ that defines `class History`, then count its lines. "
    "Answer with its path and the number of lines."
)


class DevError(Exception):
    """Something the person at the keyboard has to know or do."""


# -- the environment ---------------------------------------------------------------------------------------------


def active_environment() -> Path | None:
    """The virtual environment this script was started in, if it may be used: ours, or still empty."""
    if sys.prefix == sys.base_prefix:
        return None

    prefix = Path(sys.prefix)
    if prefix == OWN_VENV or (prefix / STAMP).exists():
        return prefix

    installed = importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
    names = {distribution.metadata["Name"].lower() for distribution in installed}
    if names <= SHIPPED_WITH_VENV:
        return prefix

    say(f"the active environment {prefix} has packages of its own; using {OWN_VENV.name} instead")
    return None


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def script_of(environment: Path, name: str) -> Path:
    """A command that a package has installed into a virtual environment."""
    return environment / (f"Scripts/{name}.exe" if os.name == "nt" else f"bin/{name}")


def make_environment() -> Path:
    """The environment to work in, made when it is not there."""
    active = active_environment()
    if active is not None:
        return active

    if not python_of(OWN_VENV).exists():
        say(f"making {OWN_VENV.name}")
        try:
            venv.create(OWN_VENV, with_pip=True, clear=OWN_VENV.exists())
        except subprocess.CalledProcessError as error:
            raise DevError(
                "Python could not put pip into a new virtual environment. On Debian and Ubuntu: "
                "apt-get install python3-venv, then run this command again."
            ) from error

    return OWN_VENV


def fingerprint() -> str:
    """Changes when what has to be installed may have changed, or the checkout was moved."""
    files = [ROOT / "requirements-dev.txt", *project_files()]
    digest = hashlib.sha256(f"{ROOT}\n{sys.version_info[:2]}\n".encode())
    for path in files:
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())

    return digest.hexdigest()


def project_files() -> list[Path]:
    """The pyproject.toml of each distribution of this repository."""
    folders = [ROOT, ROOT / "core", *sorted((ROOT / "plugins").glob("*")), *sorted((ROOT / "contrib").glob("*"))]
    return [folder / "pyproject.toml" for folder in folders if (folder / "pyproject.toml").is_file()]


def setup() -> Path:
    """Makes the environment and installs all packages, editable, unless that is done already."""
    environment = make_environment()
    stamp = environment / STAMP
    wanted = fingerprint()
    if stamp.is_file() and stamp.read_text() == wanted:
        return environment

    begin = time.monotonic()
    say("installing the packages of this repository (half a minute, once)")
    stamp.write_text("unfinished\n")
    python = python_of(environment)
    if run(python, "-c", "import pip", quiet=True) != 0:
        must(python, "-m", "ensurepip", "--upgrade", "--default-pip")

    pip = (python, "-m", "pip", "--disable-pip-version-check", "--no-input")
    forget_removed_packages(pip)
    must(*pip, "install", "--quiet", *BUILD_TOOLS)
    must(*pip, "install", "--quiet", "--no-build-isolation", "-r", "requirements-dev.txt")
    stamp.write_text(wanted)
    say(f"installed in {time.monotonic() - begin:.0f} s")
    return environment


def forget_removed_packages(pip: tuple[str | Path, ...]) -> None:
    """Uninstalls packages whose folder is gone: their entry points would point nowhere."""
    listing = subprocess.run(
        [*pip, "list", "--format", "json"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    present = {re.findall(r'(?m)^name = "(.+)"', path.read_text())[0] for path in project_files()}
    names = [str(entry["name"]) for entry in json.loads(listing)]
    gone = [name for name in names if name.startswith("ropewalk-") and name not in present]
    if gone:
        must(*pip, "uninstall", "--quiet", "--yes", *gone)


# -- running -----------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Tells what goes on, apart from the output of what is run."""
    print(f"dev.py: {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, quiet: bool = False) -> int:
    """Runs a program in the repository's root and gives its exit code."""
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run([*command], cwd=ROOT, check=False, stdout=output, stderr=output).returncode


def must(*command: str | Path) -> None:
    """Runs a program that has to succeed."""
    code = run(*command)
    if code != 0:
        raise DevError(f"this command failed with exit code {code}: {' '.join(map(str, command))}")


def test(arguments: list[str]) -> int:
    """Runs pytest over everything, or over what the arguments name."""
    return run(python_of(setup()), "-m", "pytest", *SPREAD, *arguments)


# -- the demonstration -------------------------------------------------------------------------------------------


def demo(*, check: bool) -> int:
    """Has an agent on the embedded model answer a question about this repository."""
    environment = setup()
    command: list[str | Path] = [
        *(script_of(environment, "ropewalk"), "run", "--model", DEMO_MODEL, "--tools", DEMO_TOOLS),
        *(["--json"] if check else []),
        DEMO_PROMPT,
    ]
    say(f"{DEMO_PROMPT}\n        (the first run fetches the model, about 1.1 GB)")
    if not check:
        return run(*command)

    finished = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    lines = finished.stdout.splitlines()
    if finished.returncode != 0:
        raise DevError(f"ropewalk run ended with exit code {finished.returncode}: {lines[-1:]}")

    events = [json.loads(line) for line in lines]
    for tool in final_result(events).get("tools", []):
        print(f"{tool['name']} {tool['input']} -> {tool['status']}: {tool['result']}")

    print(answer_text(events), flush=True)
    problems = demo_problems(events)
    if problems:
        raise DevError("the demonstration went wrong: " + "; ".join(problems))

    say("the answer is right, and both tools were used")
    return 0


def demo_problems(events: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a run of the demonstration, computed from the files themselves."""
    defining = [
        path for path in sorted((ROOT / "core").rglob("*.py")) if re.search(r"(?m)^class History\b", path.read_text())
    ]
    if len(defining) != 1:
        return [f"class History is defined in {len(defining)} files under core/"]

    expected = len(defining[0].read_text().splitlines())
    text = answer_text(events)
    problems = []
    if not re.search(rf"(?<!\d){expected}(?!\d)", text.replace(",", "")):
        problems.append(f"the answer should name {expected} lines of {defining[0].relative_to(ROOT)}, but is: {text!r}")

    used = tools_used(events)
    problems += [f"the tool {name} gave no result" for name in ("find_text", "count_lines") if name not in used]
    return problems


def final_result(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The result of the run, which the last event carries."""
    result: dict[str, Any] = events[-1].get("result", {}) if events else {}
    return result


def answer_text(events: list[dict[str, Any]]) -> str:
    """The text of the final message."""
    content = final_result(events).get("message", {}).get("content", [])
    return "".join(block.get("text", "") for block in content)


def tools_used(events: list[dict[str, Any]]) -> set[str]:
    """The names of the tools that answered without an error."""
    return {tool["name"] for tool in final_result(events).get("tools", []) if tool["status"] == "success"}


# -- the lists of packages ---------------------------------------------------------------------------------------


def package_lists() -> dict[Path, str]:
    """The files that name every package of this repository, as they should be by the folders."""
    core, *others = [path.parent.relative_to(ROOT).as_posix() for path in project_files()[1:]]
    folders = [core, *others]
    requirements = ROOT / "requirements-dev.txt"
    root_project = ROOT / "pyproject.toml"
    editable = "".join(f"-e ./{folder}\n" for folder in folders)
    return {
        requirements: re.sub(r"(?m)(^-e \./.*\n)+", editable, requirements.read_text()),
        root_project: with_packages(root_project.read_text(), folders),
    }


def with_packages(text: str, folders: list[str]) -> str:
    """The root pyproject.toml with these packages; a plugin that it does not know yet gets an extra."""
    data = tomllib.loads(text)
    version = data["project"]["version"]
    plugins = [folder.removeprefix("plugins/") for folder in folders if folder.startswith("plugins/")]
    pin = {name: f"ropewalk-{name}=={version}" for name in plugins}
    bundled = [name for name in plugins if pin[name] in data["project"]["dependencies"]]
    extras = [name for name in plugins if name not in bundled]

    text = with_array(text, "dependencies", [f"ropewalk-core=={version}", *(pin[name] for name in bundled)])
    section = "".join(f'{name} = ["{pin[name]}"]\n' for name in extras)
    text = with_section(text, "project.optional-dependencies", section + "all = []\n")
    text = with_array(text, "all", [pin[name] for name in extras])

    short = [folder.split("/")[-1] for folder in folders]
    sources = "".join(f"ropewalk-{name} = {{ workspace = true }}\n" for name in short)
    text = with_section(text, "tool.uv.sources", sources)

    modules = [f"ropewalk_{name.replace('-', '_')}" for name in short[1:]]
    text = with_array(text, "root_packages", ["ropewalk", *modules])
    text = with_array(text, "forbidden_modules", modules, after='id = "kernel"')
    text = with_array(text, "modules", modules, after='id = "plugins"')
    return with_array(text, "source_modules", ["ropewalk", *modules], after='id = "heavy"')


def with_array(text: str, key: str, values: list[str], *, after: str = "") -> str:
    """The text with another value of the first array of that name after a place."""
    start = text.index(after)
    lines = "".join(f'    "{value}",\n' for value in values)
    return text[:start] + re.sub(rf"(?ms)^{key} = \[.*?\]$", f"{key} = [\n{lines}]", text[start:], count=1)


def with_section(text: str, name: str, body: str) -> str:
    """The text with another body of a table; comments right below its header stay."""
    return re.sub(rf"(?m)(^\[{re.escape(name)}\]\n(?:#.*\n)*)(?:(?!\[|# --).*\n)*", rf"\g<1>{body}\n", text, count=1)


def packages() -> int:
    """Writes the lists of packages after the folders have changed."""
    for path, text in package_lists().items():
        if path.read_text() == text:
            continue

        path.write_text(text)
        say(f"wrote {path.name}")

    return 0


# -- the command line --------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Runs the command that the arguments name."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file runs before pip can check requires-python
        raise DevError(f"Ropewalk needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

    parser = argparse.ArgumentParser(
        prog="dev.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo_parser = commands.add_parser("demo", help="an agent answers a question about this repository")
    demo_parser.add_argument("--check", action="store_true", help="fail unless the answer is right")
    commands.add_parser("test", help="run the tests; all further arguments go to pytest", add_help=False)
    commands.add_parser("setup", help="make the environment only")
    commands.add_parser("packages", help="write the lists of packages, after one was added or removed")
    options, rest = parser.parse_known_args(arguments)

    if options.command == "test":
        return test(rest)

    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")

    if options.command == "demo":
        return demo(check=options.check)

    if options.command == "packages":
        return packages()

    say(f"ready: {setup()}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except DevError as problem:
        say(str(problem))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
