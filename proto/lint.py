"""Checks the protos with buf: style, and no breaking change. Run by `make lint-proto`.

Laws of this file:
- It needs no network: buf is given the descriptors that generate.py compiles, google files included.
- buf is the command named by the environment variable BUF, by default `buf` (npm package @bufbuild/buf).
- `--accept` makes the present descriptors the baseline; do so only when the contracts have changed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import HERE, compile_protos

ROOT = HERE.parent
BASELINE = ROOT / "tests" / "golden" / "descriptors.binpb"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the protos with buf.")
    parser.add_argument("--accept", action="store_true", help="make the present descriptors the baseline")
    if parser.parse_args().accept:
        BASELINE.write_bytes(compile_protos(comments=False))
        return 0
    buf = os.environ.get("BUF", "buf")
    with tempfile.TemporaryDirectory() as directory:
        image = Path(directory, "protos.binpb")
        image.write_bytes(compile_protos(comments=True))
        checks = (["lint", str(image)], ["breaking", str(image), "--against", str(BASELINE)])
        try:
            done = [
                subprocess.run([buf, *check, "--config", str(ROOT / "buf.yaml")], cwd=ROOT).returncode
                for check in checks
            ]
        except FileNotFoundError:
            sys.exit(f"{buf} not found; install the npm package @bufbuild/buf, or name the command in BUF")
    return 1 if any(done) else 0


if __name__ == "__main__":
    sys.exit(main())
