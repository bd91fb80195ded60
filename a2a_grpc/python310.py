"""What Python 3.10 lacks of the standard library; newer ones have it themselves, and pay nothing for this module.

Laws: on Python 3.11 and newer every name here is the standard library's own, so that this module can go when 3.10 does.
What has to do with asyncio is in `python310_asyncio`.
"""

import sys
from binascii import a2b_base64

__all__ = ("Self", "Unpack", "strict_base64", "tomllib")

if sys.version_info >= (3, 11):
    from functools import partial
    from typing import Self, Unpack

    import tomllib

    strict_base64 = partial(a2b_base64, strict_mode=True)
else:
    import re

    import tomli
    from typing_extensions import Self, Unpack

    tomllib = tomli
    _BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")

    def strict_base64(text: str | bytes) -> bytes:
        """What base64 says. Raises ValueError for anything else in it, as a2b_base64 of Python 3.11 can."""
        if not _BASE64.fullmatch(text if isinstance(text, str) else text.decode("latin-1")):
            raise ValueError("not base64")
        return a2b_base64(text)
