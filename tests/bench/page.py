"""The tables of a run as `docs/performance.md` has them.

Laws: a table stands between `<!-- measured: NAME -->` and `<!-- end -->`; what is between is made here alone.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.curves import BENT
from tests.bench.idle import GOALS

PAGE: Final = Path(__file__).parents[2] / "docs" / "performance.md"

Found = Mapping[str, Any]


def table(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; a head that begins with `>` is of numbers."""
    marks = ("---:" if head[0] == ">" else "---" for head in heads)
    lines = [[head.lstrip(">") for head in heads], marks, *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _about(found: Found) -> str:
    about = found["about"]
    libraries = ", ".join(f"{name} {number}" for name, number in about["libraries"].items())
    busiest = max((row["client_busy"] for row in found["rows"]), default=0.0)
    return (
        f"Taken on {about['date']}, {found['rounds']} rounds of {found['seconds']:g} s: {about['system']},\n"
        f"{about['cores']} cores, Python {about['python']}, {libraries}.\n"
        f"Load average at the start: {about['load'][0]}. The busiest client used {busiest:.2f} of its core.\n"
    )


def _ratios(found: Found) -> str:
    heads = ("what", "against", "wire", ">rate/s", "ratio (from..to)", ">goal", ">CPU us", ">base CPU us", ">p50 ms")
    return table(
        (*heads, ">p99/p50"),
        (
            (
                *(row["subject"], row["base"], row["wire"], f"{row['rate']:.0f}"),
                f"{row['ratio']:.2f} ({row['lowest']:.2f}..{row['highest']:.2f})",
                "" if row["goal"] is None else f"{row['goal']:.2f}",
                *(f"{row['server_us']:.0f}", f"{row['base_server_us']:.0f}", f"{row['middle_ms']:.1f}"),
                f"{row['slow_ms'] / row['middle_ms']:.1f}",
            )
            for row in found["rows"]
        ),
    )


def _readers(found: Found) -> str:
    heads = (">readers of one task", "wire", ">KiB a stream", ">goal", ">bare", ">events/s", ">of bare", ">goal")
    return table(
        (*heads, ">CPU us", ">base CPU us"),
        (
            (
                *(row["readers"], row["wire"], f"{row['kib']:.1f}", row["kib_goal"], f"{row['base_kib']:.1f}"),
                *(f"{row['rate']:.0f}", f"{row['ratio']:.2f}", f"{row['goal']:.2f}"),
                *(f"{row['server_us']:.1f}", f"{row['base_server_us']:.1f}"),
            )
            for row in found["readers"]
        ),
    )


def _idle(found: Found) -> str:
    rows = ((name, f"{value:.2f}", GOALS[name]) for name, value in found["idle"].items())
    return table(("before anybody asks", ">value", ">goal"), rows)


def _curves(found: Found) -> str:
    return table(
        ("what grows", "to", "CPU us of one", "at each size", ">last to cheapest"),
        (
            (
                *(row["grows"], ", ".join(f"{size:,}" for size in row["sizes"]), row["unit"]),
                *(", ".join(f"{cost:.1f}" for cost in row["server_us"]), f"{row['bend']:.2f}"),
            )
            for row in found["curves"]
        ),
    )


PARTS: Final[Mapping[str, Callable[[Found], str]]] = {
    "about": _about,
    "ratios": _ratios,
    "readers": _readers,
    "idle": _idle,
    "curves": _curves,
}
"""What makes each part of the page."""

NEEDS: Final[Mapping[str, Sequence[str]]] = {"ratios": ("rows",)}
"""What must have been measured for a part; default what is called as it is."""

_PART: Final = re.compile(r"(<!-- measured: (\w+) -->\n\n).*?(\n<!-- end -->)", re.DOTALL)


def bent(found: Found) -> list[str]:
    """The curves that bend upwards."""
    return [f"{row['grows']}: {row['bend']:.2f}" for row in found["curves"] if row["bend"] >= BENT]


def written(
    text: str,
    found: Found,
    parts: Mapping[str, Callable[[Found], str]] = PARTS,
    needs: Mapping[str, Sequence[str]] = NEEDS,
) -> str:
    """The page with the tables of a run in the place of others; a part that the run did not measure stays. parts,
    needs: those of the page."""

    def made(part: re.Match[str]) -> str:
        measured = all(found.get(name) for name in needs.get(part[2], (part[2],)))
        return f"{part[1]}{parts[part[2]](found)}{part[3]}" if measured else part[0]

    return _PART.sub(made, text)
