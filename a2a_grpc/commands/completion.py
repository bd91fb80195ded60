"""`a2a-grpc completion`: what a shell needs to complete the words of this command line.

Laws: everything is read from the commands' own parsers; a shell's way of saying it is a row of `SHELLS`. Nothing is
called when words are completed.
"""

import argparse
import importlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from a2a_grpc.cli import COMMANDS
from a2a_grpc.commands.words import Parser

PROG: Final = "a2a-grpc"


class Flag(NamedTuple):
    """A flag of a command: its spellings, whether a word follows it, which ones may (empty: any), and what it means."""

    spellings: Sequence[str]
    takes: bool
    choices: Sequence[str]
    meaning: str


class Words(NamedTuple):
    """What may follow a command: flags, and the words that it takes by place."""

    flags: Sequence[Flag]
    choices: Sequence[str]


def _words(parser: argparse.ArgumentParser) -> Words:
    flags, choices = [], []
    for action in parser._actions:
        given = [str(choice) for choice in action.choices or ()]
        if action.option_strings:
            meaning = (action.help or "").replace("%%", "%")
            flags.append(Flag(action.option_strings, action.nargs != 0, given, meaning))
        else:
            choices += given
    return Words(flags, choices)


Tables = Mapping[str, Words]


def _bash(tables: Tables) -> str:
    cases, after = [], set()
    for name, words in tables.items():
        spelled = [spelling for flag in words.flags for spelling in flag.spellings]
        cases.append(f"      {name}) words={shlex.quote(' '.join([*words.choices, *spelled]))};;")
        after |= {
            f"    {name}:{spelling}) words={shlex.quote(' '.join(flag.choices))};;"
            for flag in words.flags
            for spelling in flag.spellings
            if flag.choices
        }
    return f"""_a2a_grpc() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then words={shlex.quote(" ".join(tables))}; else
    case "${{COMP_WORDS[1]}}" in
{chr(10).join(cases)}
    esac
  fi
  case "${{COMP_WORDS[1]}}:${{COMP_WORDS[COMP_CWORD-1]}}" in
{chr(10).join(sorted(after))}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _a2a_grpc {PROG}"""


def _zsh(tables: Tables) -> str:
    return f"autoload -U +X compinit bashcompinit\ncompinit\nbashcompinit\n{_bash(tables)}"


def _fish(tables: Tables) -> str:
    made = [
        f"complete -c {PROG} -n __fish_use_subcommand -f -a {name} -d {shlex.quote(COMMANDS[name])}" for name in tables
    ]
    for name, words in tables.items():
        begin = f"complete -c {PROG} -n '__fish_seen_subcommand_from {name}'"
        if words.choices:
            made.append(f"{begin} -f -a {shlex.quote(' '.join(words.choices))}")
        for flag in words.flags:
            spelled = " ".join(
                f"-l {spelling[2:]}" if spelling.startswith("--") else f"-s {spelling[1:]}"
                for spelling in flag.spellings
            )
            values = " -r -F" if flag.takes else ""
            if flag.choices:
                values = f" -x -a {shlex.quote(' '.join(flag.choices))}"
            made.append(f"{begin} {spelled}{values} -d {shlex.quote(flag.meaning)}")
    return "\n".join(made)


SHELLS: Final[Mapping[str, Callable[[Tables], str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
"""Shells, and what writes their script."""


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc completion`."""
    made = Parser(
        prog="a2a-grpc completion",
        description='Prints what completes these words in a shell: eval "$(a2a-grpc completion bash)"',
    )
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return made


def run(words: Sequence[str]) -> int:
    """Print the script of a shell."""
    shell = parser().parse_args(words).shell
    parsers = {name: importlib.import_module(f"a2a_grpc.commands.{name}").parser() for name in COMMANDS}
    print(SHELLS[shell]({name: _words(made) for name, made in parsers.items()}))
    return 0
