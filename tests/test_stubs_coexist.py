"""Our stubs and those of the official SDK live in one process, whichever is imported first.

Both register the same symbols, so each case runs in a process of its own. The SDK is looked for in the
running environment, then in the Python that an environment variable names.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# SDK line -> (variable naming a Python with it, its generated module, our module of the same package).
SDKS = {
    "1.x": ("A2A_SDK1_PYTHON", "a2a.types.a2a_pb2", "v1"),
    "0.3.x": ("A2A_SDK03_PYTHON", "a2a.grpc.a2a_pb2", "v03"),
}
SCRIPT = """
import importlib, sys
theirs_name, ours_name, first = sys.argv[1:]
if first == "theirs":
    importlib.import_module("a2a.types")
    theirs = importlib.import_module(theirs_name)
ours = importlib.import_module(f"a2a_stubs.{ours_name}")
importlib.import_module(f"a2a_stubs.{ours_name}_grpc")
if first == "ours":
    importlib.import_module("a2a.types")
    theirs = importlib.import_module(theirs_name)
assert ours.DESCRIPTOR.package == theirs.DESCRIPTOR.package
assert ours.Task is not theirs.Task and ours.Task.DESCRIPTOR.full_name == theirs.Task.DESCRIPTOR.full_name


def filled(stubs):
    status = stubs.TaskStatus(state=stubs.TaskState.TASK_STATE_WORKING)
    task = stubs.Task(id="t", context_id="c", status=status)
    task.status.timestamp.FromSeconds(1700000000)
    task.metadata.update({"k": ["v", 1.5, None]})
    task.artifacts.add(artifact_id="a").parts.add(text="hello")
    return task


sent = filled(ours).SerializeToString(deterministic=True)
assert sent == filled(theirs).SerializeToString(deterministic=True)
assert theirs.Task.FromString(sent) == filled(theirs) and ours.Task.FromString(sent) == filled(ours)
print("both used")
"""


def run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(ROOT), str(ROOT / "generated")))
    return subprocess.run(
        [python, "-c", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )


def python_with(sdk: str) -> str:
    """A Python that has the SDK line, or a skip."""
    variable, module, _ = SDKS[sdk]
    for python in (sys.executable, os.environ.get(variable)):
        if python and run(python, f"import {module}").returncode == 0:
            return python
    if os.environ.get(variable):
        pytest.fail(f"{variable} names a Python without a2a-sdk {sdk}")
    pytest.skip(f"needs a2a-sdk {sdk} here or in the Python named by {variable}")


@pytest.mark.requirement("BL-42")
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("sdk", SDKS)
def test_both_can_be_imported_and_used(sdk: str, first: str) -> None:
    _, module, ours = SDKS[sdk]
    done = run(python_with(sdk), SCRIPT, module, ours, first)
    assert (done.returncode, done.stdout) == (0, "both used\n"), done.stderr
