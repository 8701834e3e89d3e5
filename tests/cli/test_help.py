"""Every verb explains itself, and every verb is in the README."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from gpupolicy.cli.main import app


def verbs(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from verbs(inner, (*path, name))
    else:
        yield path, command


VERBS = dict(verbs(typer.main.get_command(app)))


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_says_what_a_verb_does_and_shows_an_example(gpupolicy, verb: tuple[str, ...]) -> None:
    told = gpupolicy(*verb, "--help")

    assert told.code == 0
    assert (VERBS[verb].help or "").split(".")[0] in " ".join(told.out.split())
    assert "gpupolicy " + " ".join(verb) in " ".join(told.out.split())


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_the_readme_names_every_verb(repository: Path, verb: tuple[str, ...]) -> None:
    assert " ".join(verb) in (repository / "README.md").read_text()


def test_every_option_says_what_it_is_for() -> None:
    silent = [
        f"{' '.join(verb)} {option.opts[0]}"
        for verb, command in VERBS.items()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]

    assert silent == []
