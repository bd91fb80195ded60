"""A program that needs what an extra brings says which, where it is not installed."""

import pytest

from tests.rules.sources import fresh_python

WITHOUT = """
import sys
sys.modules[{missing!r}] = None
import a2a_grpc.{module}
"""

GATEWAY = """
import sys
sys.modules["h2"] = None
from a2a_grpc.client_auth import Channel
from a2a_grpc.gateway import Upstream
chosen = Upstream("127.0.0.1:1")._way.settings["channel"].streams
try:
    Channel(streams="h2")
except ModuleNotFoundError as fault:
    print(repr(chosen), fault)
"""


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("auth_jwt", "joserfc", "auth"),
        ("client_http2", "h2", "gateway"),
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


def test_a_gateway_without_its_extra_reads_by_grpcio_and_says_what_h2_needs() -> None:
    done = fresh_python(GATEWAY)
    assert not done.returncode, done.stderr
    assert done.stdout.strip() == "'' there is no h2: install a2a-grpc[gateway]"
