"""Law 8: importing the package is quick and loads nothing that a server may not need."""

import json

import pytest

from tests.rules.sources import fresh_python

IMPORT = """
import json, resource, sys
import a2a_grpc
print(json.dumps([sorted(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_utime]))
"""
UNWANTED = ("a2a_grpc.client", "a2a_grpc.cli", "a2a_grpc.gateway", "a2a_grpc.mcp", "a2a_grpc.testing")
UNWANTED += ("asyncpg", "nats", "opentelemetry", "prometheus_client", "sqlite3", "uvloop", "pytest", "grpc_tools")
CEILING = 5.0
"""Seconds of processor time, many times what it takes: only a change of kind is to be noticed."""


@pytest.mark.requirement("BL-41", "BL-43")
def test_importing_the_package_loads_no_client_no_database_no_telemetry() -> None:
    done = fresh_python(IMPORT)
    assert not done.returncode, done.stderr
    modules, seconds = json.loads(done.stdout)
    loaded = [name for name in modules if name in UNWANTED or name.split(".")[0] in UNWANTED]
    assert not loaded
    assert seconds < CEILING
