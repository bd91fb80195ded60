"""What `a2a-grpc completion` prints works in the shell that it is for."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from a2a_grpc.cli import COMMANDS, main
from tests.terminals import terminal
from tests.test_cli import ENVIRONMENT


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["a2a-grpc", ""], set(COMMANDS)),
        (["a2a-grpc", "doc"], {"doctor"}),
        (["a2a-grpc", "call", "sub"], {"subscribe"}),
        (["a2a-grpc", "call", "send", "http://a", "--bind"], {"--binding"}),
        (["a2a-grpc", "call", "--binding", ""], {"jsonrpc", "rest", "http+json", "grpc"}),
        (["a2a-grpc", "serve", "--max-pa"], {"--max-parts"}),
        (["a2a-grpc", "completion", ""], {"bash", "zsh", "fish", "-h", "--help"}),
    ],
)
def test_bash_offers_commands_flags_and_their_values(
    typed: list[str], offered: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = " ".join(f"'{word}'" for word in typed)
    asks = f'COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _a2a_grpc; printf "%s\\n" "${{COMPREPLY[@]}}"'
    program = f"{script('bash', capsys)}\n{asks}"
    found = subprocess.run(["bash", "-c", program], check=True, capture_output=True, text=True)
    assert not found.stderr and set(found.stdout.split()) == offered


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("a2a-grpc ", set(COMMANDS)),
        ("a2a-grpc doc", {"doctor"}),
        ("a2a-grpc call sub", {"subscribe"}),
        ("a2a-grpc call send http://a --bind", {"--binding"}),
        ("a2a-grpc call --binding ", {"jsonrpc", "rest", "http+json", "grpc"}),
        ("a2a-grpc call --binding=gr", {"--binding=grpc"}),
        ("a2a-grpc call send http://a --file no", {"note.txt"}),
        ("a2a-grpc serve --max-pa", {"--max-parts"}),
        ("a2a-grpc completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_fish_offers_commands_flags_and_their_values(
    typed: str, offered: set[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if shutil.which("fish") is None:
        pytest.skip("needs fish")
    (tmp_path / "note.txt").touch()
    (tmp_path / "fish").write_text(script("fish", capsys))
    program = f"source fish; complete -C {shlex.quote(typed)}"
    found = subprocess.run(["fish", "-N", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not found.stderr and {line.split("\t")[0] for line in found.stdout.splitlines()} == offered


async def test_zsh_completes_commands_flags_and_their_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("needs zsh")
    file = tmp_path / "completion"
    file.write_text(script("zsh", capsys))
    (tmp_path / "note.txt").touch()
    for name, value in (("HOME", tmp_path), ("PS1", "ready> ")):
        monkeypatch.setitem(ENVIRONMENT, name, str(value))
    async with terminal("-f", "-i", program=["zsh"]) as screen:
        await screen.shows("ready> ")
        tells = "tell() { zle -I; print -r -- '<'$BUFFER'>'; BUFFER= }; zle -N tell; bindkey '^X' tell"
        screen.press(f"cd {tmp_path}; . {file}; {tells}; echo is $((40 + 2))\r")
        await screen.shows("is 42")
        await screen.shows("ready> ")
        for typed, *seen in (
            ("a2a-grpc doc\t", "<a2a-grpc doctor >"),
            ("a2a-grpc call sub\t", "<a2a-grpc call subscribe >"),
            ("a2a-grpc call send http://a --bind\t", "<a2a-grpc call send http://a --binding >"),
            ("a2a-grpc call --binding \t", "http+json", "<a2a-grpc call --binding >"),
            ("a2a-grpc call --file no\t", "<a2a-grpc call --file note.txt >"),
            ("a2a-grpc serve --max-pa\t", "<a2a-grpc serve --max-parts >"),
        ):
            screen.press(f"{typed}\x18")
            for words in (*seen, "ready> "):
                await screen.shows(words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_can_read_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    assert all(name in text for name in COMMANDS) and "outcome" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, check=True, text=True, capture_output=True)
