"""schemathesis, which reads the OpenAPI document and then asks whatever it can think of, on a server with a key."""

import os
from pathlib import Path

import pytest

from tests.interop.conftest import made, output, serving

EFFORT = int(os.environ.get("A2A_FUZZ", "1"))
SECONDS = (30 if os.environ.get("A2A_CI") else 20) * EFFORT
CHANCE = () if EFFORT > 1 else ("--generation-deterministic",)
"""What the tests of every day find, they find every day."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)


@pytest.mark.requirement("REST-18", "REST-24", "BL-32", "ERR-11")
def test_what_the_document_promises_holds_for_whatever_is_asked(tmp_path: Path) -> None:
    command = made("A2A_SCHEMATHESIS_PYTHON").parent / "schemathesis"
    with serving(tmp_path / "log") as served:
        words = ("run", f"{served.url}/openapi.json", "--no-color", "--max-time", str(SECONDS), "--max-examples", "5")
        limits = ("--phases", "coverage,fuzzing", "--request-timeout", "60", "--checks", ",".join(CHECKS))
        told = output(
            command, *words, *limits, *CHANCE, "--suppress-health-check", "all", timeout=SECONDS + 300, cwd=tmp_path
        )
    assert " generated" in told and "FAIL" not in told
