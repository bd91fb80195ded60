"""How a field of a message type looks from JSON: once, many times, or as a map; required or not.

Laws: the only place that asks descriptors for shape; works with every protobuf release that the package allows. It
knows no message by name and runs only while a type is compiled.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from a2a_stubs import v03, v1
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

ONE, MANY, MAP = range(3)

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {**v1.REQUIRED, **v03.REQUIRED}
"""Proto names of the REQUIRED fields of each message type, by its full name."""


def fields(descriptor: Descriptor) -> Iterator[tuple[Any, int, Any]]:
    """The fields of a type in order, each with its shape (ONE, MANY, MAP) and the field that describes one item of it:
    itself, or the value of the map entry."""
    proto = DescriptorProto()  # the one form that tells a repeated field alike in every release
    descriptor.CopyToProto(proto)
    for field, row in zip(descriptor.fields, proto.field, strict=True):
        kind: Any = field.message_type
        if row.label != row.LABEL_REPEATED:
            yield field, ONE, field
        elif kind is not None and kind.GetOptions().map_entry:
            yield field, MAP, kind.fields_by_name["value"]
        else:
            yield field, MANY, field
