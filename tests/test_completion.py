"""What `a2a-grpc completion` prints works in the shell that it is for."""

import shutil
import subprocess

import pytest

from a2a_grpc.cli import COMMANDS, main


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_can_read_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    assert all(name in text for name in COMMANDS) and "outcome" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, check=True, text=True, capture_output=True)
