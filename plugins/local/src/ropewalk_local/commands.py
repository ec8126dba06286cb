"""The command `ropewalk models`: which models there are, and getting one in advance."""

from __future__ import annotations

import click

from ropewalk_local import catalog, fetch
from ropewalk_local.cache import is_noted, models_folder
from ropewalk_local.errors import LocalModelError, readable


@click.group()
def models() -> None:
    """Lists and fetches the models that run on this machine."""


@models.command("list")
def list_models() -> None:
    """Shows the models of the catalog and which are fetched."""
    for entry in catalog.CATALOG:
        state = "fetched" if is_noted(fetch.path_of(entry), entry.sha256) else "-"
        click.echo(f"{entry.name:20} {readable(entry.size):>9}  {entry.licence:11} {state:8} {entry.summary}")

    click.echo(f"Folder: {models_folder()}. Any .gguf file can be used by its path: local:PATH")


@models.command("fetch")
@click.argument("name", default=catalog.DEFAULT_MODEL)
def fetch_model(name: str) -> None:
    """Fetches the model NAME, or the default one, and checks it."""
    try:
        path = fetch.ensure(catalog.find(name))
    except LocalModelError as error:
        raise click.ClickException(str(error)) from error

    click.echo(str(path))
