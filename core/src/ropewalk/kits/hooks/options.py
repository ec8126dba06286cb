"""Options of plugins: from `plugins=[(name, options)]`, `ropewalk.toml` and the environment; the first found wins.

A plugin takes options by declaring a pydantic model as its class attribute `Config`; it is then made as
`Plugin(Config(...))`. The file is `ropewalk.toml` in the current folder or what `ROPEWALK_CONFIG` names, with a table
`[plugins.<name>]` per installed plugin; a variable is `ROPEWALK_<NAME>_<OPTION>`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks.discovery import registry
from ropewalk.kits.hooks.parameters import KNOWN_PLUGINS
from ropewalk.kits.hooks.refusals import did_you_mean

FILE: Final = Path("ropewalk.toml")
SECTIONS: Final = ("plugins", "policy")


class OptionsError(PluginError):
    """An option is unknown or has a value that its plugin does not take."""


def build(cls: type, name: str, given: Mapping[str, Any] | None = None) -> Any:
    """Makes an instance of a plugin class with its options.

    Args:
        cls: The class.
        name: The plugin's name.
        given: What stands in `plugins=`.

    Raises:
        OptionsError: An option is unknown or wrong; plugin, option and source are named.
    """
    sources = [("plugins=", dict(given or {})), _from_file(name)]
    config: Any = getattr(cls, "Config", None)
    if config is None:
        for source, options in sources:
            if options:
                raise OptionsError(
                    f"plugin {name!r} takes no options and {source} has {_listed(options)}: leave them out"
                )

        return cls()

    fields = getattr(config, "model_fields", None)
    if fields is None:
        raise PluginError(f"Config of plugin {name!r} is {config!r}: make it a subclass of pydantic.BaseModel")

    sources += _from_environment(name, fields)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source, options in sources:
        for option, value in options.items():
            _check_known(name, option, source, fields)
            if option not in values:
                values[option], origins[option] = value, source

    return cls(_validated(config, name, values, origins))


def _check_known(name: str, option: str, source: str, fields: Mapping[str, Any]) -> None:
    known = {key for field, info in fields.items() for key in (field, getattr(info, "alias", None)) if key}
    if option not in known:
        raise OptionsError(
            f"plugin {name!r} has no option {option!r} (in {source}): {did_you_mean(option, known)}"
            f"its options are {_listed(known)}"
        )


def _validated(config: Any, name: str, values: dict[str, Any], origins: dict[str, str]) -> Any:
    from pydantic import ValidationError

    try:
        return config.model_validate(values)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            path = ".".join(map(str, problem["loc"]))
            option = str(problem["loc"][0]) if problem["loc"] else ""
            source = origins.get(option)
            problems.append(f"{path or 'options'}: {problem['msg']}" + (f" (in {source})" if source else ""))
            if problem["type"] == "missing" and source is None:
                variable = f"{_prefix(name)}{option.upper()}"
                problems[-1] += f" (give it in plugins=[({name!r}, {{...}})], {FILE} [plugins.{name}] or {variable})"

        raise OptionsError(f"options of plugin {name!r} are wrong: {'; '.join(problems)}") from error


def _listed(names: Any) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


# -- the file ----------------------------------------------------------------------------------------------------


def check_file() -> None:
    """Reads the options file, if there is one, so that what is wrong in it is said at once.

    Raises:
        PluginError: The file cannot be read, or names something that there is not.
    """
    _tables()


def _from_file(name: str) -> tuple[str, Mapping[str, Any]]:
    path, tables = _tables()
    return f"{path} [plugins.{name}]", tables.get(name, {})


def _tables() -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    named = os.environ.get("ROPEWALK_CONFIG")
    path = Path(named) if named else FILE
    try:
        stat = path.stat()
    except OSError as error:
        if named:
            raise PluginError(
                f"ROPEWALK_CONFIG names {named!r}, which cannot be read ({error.strerror}): correct or unset it"
            ) from error

        return str(FILE), {}

    tables = _parsed(str(path.absolute()), stat.st_mtime_ns, stat.st_size)
    for name in tables:
        _check_plugin(str(path), name)

    return str(path), tables


def _check_plugin(path: str, name: str) -> None:
    installed = registry().installed
    if name in installed:
        return

    if name in KNOWN_PLUGINS:
        raise MissingPluginError(f"[plugins.{name}] in {path}", KNOWN_PLUGINS[name])

    hint = did_you_mean(name, {*installed, *KNOWN_PLUGINS})
    raise OptionsError(
        f"{path} has options for a plugin {name!r} and there is none: {hint}installed are {_listed(installed)}"
    )


@lru_cache(maxsize=8)
def _parsed(path: str, _mtime: int, _size: int) -> Mapping[str, Mapping[str, Any]]:
    import tomllib

    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))  # some editors begin files with a mark
    except OSError as error:
        raise PluginError(f"{path} cannot be read ({error.strerror}): make it a file that may be") from error
    except ValueError as error:
        raise PluginError(f"{path} cannot be read ({error}): correct what it says") from error

    for section in content:
        if section not in SECTIONS:
            raise OptionsError(
                f"{path} has a section {section!r} that nothing reads: {did_you_mean(section, SECTIONS)}"
                f"the sections are {_listed(SECTIONS)}"
            )

    _check_policy(path, content)
    tables = content.get("plugins", {})
    for name, table in tables.items() if isinstance(tables, dict) else [("plugins", tables)]:
        if not isinstance(table, dict):
            wanted = "plugins.<name>" if table is tables else f"plugins.{name}"
            raise OptionsError(f"{path}: {name} is no table: write [{wanted}] and its options below")

    return tables  # type: ignore[no-any-return]


def _check_policy(path: str, content: Mapping[str, Any]) -> None:
    """Refuses policies that would look as if they were in force."""
    from ropewalk.kits.hooks import policy  # it reads options itself

    if "policy" in content and Path(path) != policy.ADMIN_FILE:
        raise OptionsError(
            f"{path} has a section [policy], which is read from {policy.ADMIN_FILE} alone: move it there, or name the "
            f"policies in {policy.VARIABLE}"
        )


# -- the environment ---------------------------------------------------------------------------------------------


def _prefix(name: str) -> str:
    return f"ROPEWALK_{name.upper().replace('-', '_')}_"


def _from_environment(name: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    prefix = _prefix(name)
    # ROPEWALK_SESSION_FILE_PATH is an option of session-file, and none of a plugin named session.
    longer = tuple(
        other
        for each in {*registry().installed, *KNOWN_PLUGINS}
        if (other := _prefix(each)) != prefix and prefix in other
    )
    for variable, text in os.environ.items():
        if variable.startswith(prefix) and not (longer and variable.startswith(longer)):
            option = variable.removeprefix(prefix).lower()
            yield variable, {option: _value(text, fields.get(option))}


def _value(text: str, field: Any) -> Any:
    """Lists and tables are written as JSON; pydantic reads numbers and flags from text."""
    if text[:1] in {"[", "{"} and getattr(field, "annotation", None) is not str:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return text
