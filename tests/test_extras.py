"""A program that needs what an extra brings says which, where it is not installed."""

import pytest

from tests.rules.sources import fresh_python

WITHOUT = """
import sys
sys.modules[{missing!r}] = None
import a2a_grpc.{module}
"""


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("auth_jwt", "joserfc", "auth"),
        ("auth_keys", "joserfc", "auth"),
        ("signing", "rfc8785", "auth"),
        ("verification", "joserfc", "auth"),
        ("telemetry_otel", "opentelemetry", "telemetry"),
        ("telemetry_prometheus", "prometheus_client", "telemetry"),
    ],
)
def test_an_import_without_its_extra_says_what_to_install(module: str, missing: str, extra: str) -> None:
    done = fresh_python(WITHOUT.format(module=module, missing=missing))
    assert done.returncode
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: there is no {missing}")
    assert last.endswith(f"install a2a-grpc[{extra}]")
