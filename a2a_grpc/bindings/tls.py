"""TLS of both ports: certificate, key and authorities from files, and the certificates that clients show.

Laws: version 1.2 at least (SEC-01, I-63). Files are looked at when a connection begins, so that a certificate that was
replaced is in use from then on; one that cannot be used leaves the former in use and is told to the log. What a client
shows was checked by the TLS library before it is read here.
"""

import logging
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import grpc

from a2a_grpc.call import Certificate
from a2a_grpc.config import Options

log: Final = logging.getLogger("a2a_grpc")

_TOLD: Final = {"CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE"}
"""Why a client is not let in that has shown no certificate, or one that is not to be trusted."""


class _Telling(ssl.SSLObject):
    """One connection. When a client is not let in, asyncio closes at once, and what TLS has to say of it stays unsent:
    here it seems to want more of the client, so that it is sent, and is at an end when that leaves."""

    _wrong: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """As always, but for that."""
        if self._wrong is not None:
            raise self._wrong
        try:
            super().do_handshake()
        except ssl.SSLError as wrong:
            if wrong.reason not in _TOLD:
                raise
            self._wrong = wrong
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, str(wrong)) from wrong  # 3.10 looks at the number


class TlsFiles:
    """The files that the options name, as last found usable. Raises OSError when they are not so from the start.

    context: for HTTP. require: whether clients must show a certificate.
    """

    def __init__(self, options: Options) -> None:
        self._paths = [Path(path) for path in (options.tls_cert, options.tls_key, options.tls_client_ca) if path]
        self.require = bool(options.tls_client_ca)
        self._stamp = self._now()
        self._load()

    def _now(self) -> list[tuple[int, int, int]]:
        return [(found.st_mtime_ns, found.st_size, found.st_ino) for found in (path.stat() for path in self._paths)]

    def _load(self) -> None:
        cert, key, *authorities = self._paths
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslobject_class = _Telling
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(cert, key, password="")  # so that nobody is asked for a pass phrase
        except ssl.SSLError as fault:
            raise OSError(f"tls_cert {cert} and tls_key {key} cannot be used: {fault.reason or fault}") from None
        for file in authorities:
            try:
                context.load_verify_locations(file)
            except ssl.SSLError as fault:
                raise OSError(f"tls_client_ca {file} cannot be used: {fault.reason or fault}") from None
            context.verify_mode = ssl.CERT_REQUIRED
        self._content = [path.read_bytes() for path in self._paths]
        self.context = context

    def changed(self) -> bool:
        """Whether a file has changed since the last look, and can be used."""
        try:
            if (stamp := self._now()) == self._stamp:
                return False
            self._stamp = stamp
            self._load()
        except OSError as fault:
            log.warning("TLS files have changed and cannot be used, the former ones stay: %s", fault)
            return False
        log.info("TLS files have changed and are in use")
        return True

    def for_grpc(self) -> Any:
        """The certificate configuration of grpc."""
        chain, key, *authorities = self._content
        return grpc.ssl_server_certificate_configuration([(key, chain)], authorities[0] if authorities else None)


def tls_context(options: Options) -> ssl.SSLContext | None:
    """The TLS settings of the HTTP port, None without a certificate. Raises OSError: a file cannot be used."""
    if not options.tls_cert:
        return None
    files = TlsFiles(options)

    def begin(connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        files.changed()
        connection.context = files.context

    first = files.context
    first.sni_callback = begin
    return first


def server_credentials(options: Options) -> Any:
    """The TLS settings of the gRPC port, which needs a certificate. Raises OSError: a file cannot be used."""
    files = TlsFiles(options)
    return grpc.dynamic_ssl_server_credentials(
        files.for_grpc(), lambda: files.for_grpc() if files.changed() else None, files.require
    )


NAMES: Final = frozenset({"DNS", "URI", "email", "IP Address"})
"""The kinds of alternative names that say who somebody is. Of others the ssl module tells no text, or one that is the
same for all, and so does grpc: `UNTOLD`."""

UNTOLD: Final = b"other types of SAN"


def of_connection(peer: Mapping[str, Any] | None) -> Certificate | None:
    """The certificate that an HTTP client has shown, as the ssl module tells it."""
    if not peer:
        return None
    subject = dict(pair for part in peer.get("subject", ()) for pair in part)
    names = (_address(name) if kind == "IP Address" else name for kind, name in _named(peer))
    return Certificate(str(subject.get("commonName", "")), tuple(names))


def _named(peer: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    return [(kind, name) for kind, name in peer.get("subjectAltName", ()) if kind in NAMES]


def _address(name: str) -> str:
    """An address in the short form, in which gRPC tells it."""
    with suppress(ValueError):
        return str(ip_address(name.strip()))
    return name


def of_context(told: Mapping[str, Iterable[bytes]]) -> Certificate | None:
    """The certificate that a gRPC client has shown, as grpc tells it."""
    if "x509_pem_cert" not in told:
        return None
    common = [name.decode("utf-8", "replace") for name in told.get("x509_common_name", ())]
    shown = (name for name in told.get("x509_subject_alternative_name", ()) if name != UNTOLD)
    names = (name.decode("utf-8", "replace") for name in shown)
    return Certificate(common[0] if common else "", tuple(names))
