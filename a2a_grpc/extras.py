"""What the extras of the package bring, and what is said where one is missing.

Laws: nothing is imported here; a module names the extra that it needs around its own imports.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around imports of what an extra brings, such as `with needs("auth"): import joserfc`. Raises ModuleNotFoundError
    that says what to install, in place of one that names the missing module alone."""
    try:
        yield
    except ModuleNotFoundError as missing:
        told = f"there is no {missing.name}: install a2a-grpc[{extra}]"
        raise ModuleNotFoundError(told, name=missing.name) from None
