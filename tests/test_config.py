"""Options: what is refused when they are made."""

from typing import Any

import pytest

from a2a_grpc.config import OptionError, Options, from_text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("http", "localhost"),
        ("http", "127.0.0.1:http"),
        ("http", "127.0.0.1:65536"),
        ("grpc", "[::]:-1"),
        ("grpc", "8080"),
        ("grace", "nan"),
        ("lease", "inf"),
        ("max_parts", "0"),
        ("public_url", "agents.example"),
        ("public_url", "grpc://agents.example"),
        ("public_url", "https:///orders"),
        ("public_url", "https://agents.example/?a=b"),
        ("public_grpc", "agents example"),
        ("api_key_header", "X Key"),
        ("api_key_header", ""),
        ("card_jku", "keys.json"),
        ("cors_origins", "app.example"),
        ("cors_origins", "https://app.example/page"),
        ("push_allow", "a b"),
        ("push_allow", "http://hooks.example"),
        ("push_allow", "hooks.example:8080"),
        ("push_allow", "10.0.0.300"),
        ("push_allow", "10.1.2.3/16"),
        ("metrics", "all"),
    ],
)
def test_a_value_that_no_server_could_work_with_is_refused_by_its_name(name: str, text: str) -> None:
    given: dict[str, Any] = {name: from_text(name, text)}
    with pytest.raises(OptionError, match=f"^{name} must be "):
        Options(**given)


@pytest.mark.parametrize("address", ["", "127.0.0.1:0", "localhost:65535", "[::1]:8080"])
def test_addresses_are_a_host_and_a_port_or_nothing(address: str) -> None:
    assert Options(http=address, grpc=address).http == address


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cors_origins", "https://app.example, http://localhost:3000/, capacitor://localhost, null, *"),
        ("push_allow", "10.1.0.0/16, ::1, 127.0.0.1, hooks.example, localhost, my_service, 1and1.example"),
        ("public_grpc", "https://agents.example:443"),
    ],
)
def test_what_looks_unusual_and_works_is_let_in(name: str, text: str) -> None:
    given: dict[str, Any] = {name: from_text(name, text)}
    assert getattr(Options(**given), name) == given[name]
