"""Exchanges over HTTP that end in time: connections whose every step takes what is left of the exchange's deadline.

A time-out of each read lets a server go on for ever: it drips a status line, headers, a handshake or answers of the
100s. Here the name, the connection, proxies, TLS, the request and the whole answer share one deadline, and what comes
before a body is bounded in bytes. The extension point is `httpcore2.NetworkBackend`; nothing of a library is patched.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread, local
from typing import Any, TypeAlias, TypeVar
from urllib.request import getproxies

import httpcore2
import httpx2

from reconciler.model.bounds import HTTP_HEAD, HTTP_PIECES

_T = TypeVar("_T")
_TLS_RECORD = 16 << 10
_CONNECTIONS, _KEPT_CONNECTIONS = 100, 20
_WHOLE_PIECE = 64
"""Bytes of a piece of a body that a server may send at no charge."""


class Overlong(Exception):  # noqa: N818 - it names what was met, as the message that quotes it does
    """A server sends more than an exchange may take; the message is a predicate."""


class RefusedAddress(Exception):  # noqa: N818 - it names what was met, as Overlong does
    """A name has led to an address that nothing may be sent to; the message says why."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer: until when it may last, and what may still come before the body."""

    deadline: float
    """By the monotonic clock."""
    head: int = HTTP_HEAD.most
    """Bytes that may still come before the body."""
    pieces: int = HTTP_PIECES.most
    """Pieces of a few bytes that the body may still have."""
    in_body: bool = False
    host: str = ""
    """The host that is asked, which a proxy is not."""
    refuse: Callable[[str, bool], str] | None = None
    """Says why nothing may be sent to an IP address, or nothing, as `HttpClient.send` takes it."""

    def check_address(self, host: str, family: socket.AddressFamily, address: Any) -> None:
        """Check the address that a name has led to, before anything connects: a port that is open would show.

        Raises RefusedAddress, and OSError where it cannot be checked.
        """
        if self.refuse is not None and host == self.host:
            why = self.refuse(address[0], _is_own(family, address))
            if why:
                raise RefusedAddress(why)

    def remaining(self) -> float:
        """Return the seconds left. Raises TimeoutError where there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def follow(self, step: str, _details: Mapping[str, Any]) -> None:
        """Take note of a step of a request, as httpcore traces it; a proxy's answer to CONNECT has a head as well."""
        if step == "http11.receive_response_headers.complete":
            self.in_body = True
        elif step == "http11.send_request_headers.started":
            self.in_body = False

    def received(self, size: int) -> None:
        """Count bytes of a connection. Raises Overlong."""
        if not self.in_body:
            self.head -= size
            if self.head < 0:
                raise Overlong(f"it sends over {HTTP_HEAD} before its answer")

    def took(self, size: int) -> None:
        """Count a piece of the body. Raises Overlong and TimeoutError."""
        self.pieces -= size < _WHOLE_PIECE
        if self.pieces < 0:
            raise Overlong(f"it sends its answer in over {HTTP_PIECES.most:,} pieces of a few bytes")
        self.remaining()


class _Current(local):
    """The exchange of this thread: a request is sent, and its answer read, by one thread."""

    exchange: Exchange | None = None

    def require(self) -> Exchange:
        if self.exchange is None:
            raise httpcore2.ReadError("the exchange has ended")
        return self.exchange


class _Stream(httpcore2.NetworkStream):
    """A connection on which TLS can begin, also within TLS, as to the server behind an https proxy."""

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Speak TLS on it from now on."""
        del timeout
        return _Tls(self, ssl_context, server_hostname)


class _Wire(_Stream):
    """A TCP connection."""

    def __init__(self, connection: socket.socket, current: _Current) -> None:
        self._socket, self._current = connection, current

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what has come; `timeout` is that of the exchange."""
        del timeout
        exchange = self._current.require()
        with _as_network_error(httpcore2.ReadTimeout, httpcore2.ReadError):
            self._socket.settimeout(exchange.remaining())
            data = self._socket.recv(max_bytes)
        exchange.received(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it; `timeout` is that of the exchange."""
        del timeout
        exchange = self._current.require()
        rest = memoryview(buffer)
        with _as_network_error(httpcore2.WriteTimeout, httpcore2.WriteError):
            while rest:
                self._socket.settimeout(exchange.remaining())
                rest = rest[self._socket.send(rest) :]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks for."""
        return _is_readable(self._socket) if info == "is_readable" else None


class _Tls(_Stream):
    """TLS on any connection, on one with TLS as well, as of an https proxy: each record passes the exchange."""

    def __init__(self, stream: httpcore2.NetworkStream, context: ssl.SSLContext, hostname: str | None) -> None:
        self._stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)
            with _as_network_error(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                self._run(self._tls.do_handshake)
        except BaseException:
            stream.close()
            raise

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what has come; nothing at the end, said or not, as of a plain connection."""
        del timeout
        with _as_network_error(httpcore2.ReadTimeout, httpcore2.ReadError):
            try:
                return self._run(lambda: self._tls.read(max_bytes))
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it."""
        del timeout
        rest = memoryview(buffer)
        with _as_network_error(httpcore2.WriteTimeout, httpcore2.WriteError):
            while rest:
                part = rest[:_TLS_RECORD]
                rest = rest[self._run(partial(self._tls.write, part)) :]

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks for."""
        return self._tls if info == "ssl_object" else self._stream.get_extra_info(info)

    def _run(self, step: Callable[[], _T]) -> _T:
        """Take a step of TLS, and bring over what it writes and waits for."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._flush()
                data = self._stream.read(_TLS_RECORD)
                self._incoming.write(data) if data else self._incoming.write_eof()
            except ssl.SSLError:
                with suppress(httpcore2.NetworkError, httpcore2.TimeoutException):
                    self._flush()  # the alert that tells the server why
                raise
            else:
                self._flush()
                return result

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._stream.write(self._outgoing.read())


class _Backend(httpcore2.NetworkBackend):
    """Makes connections within the exchange."""

    def __init__(self, current: _Current) -> None:
        self._current = current

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first address of a name that answers; each has its part of the time that is left."""
        del timeout, local_address, socket_options
        exchange = self._current.require()
        with _as_network_error(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            addresses = _resolve(host, port, exchange.remaining())
            problem: OSError | None = None
            for index, (family, kind, protocol, _, address) in enumerate(addresses):
                exchange.check_address(host, family, address)
                connection = socket.socket(family, kind, protocol)
                try:
                    connection.settimeout(exchange.remaining() / (len(addresses) - index))
                    connection.connect(address)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                except OSError as error:
                    connection.close()
                    problem = error
                else:
                    return _Wire(connection, self._current)
            raise problem or OSError(f"{host} has no address")


_Address: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


def _resolve(host: str, port: int, patience: float) -> Sequence[_Address]:
    """Find the addresses of a name in time; a name server that is silent is left to a thread that ends by itself."""
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found: SimpleQueue[Sequence[_Address] | OSError] = SimpleQueue()

    def resolve() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.put(error if isinstance(error, OSError) else OSError(f"{host} is no name of a host"))

    Thread(target=resolve, name="resolve", daemon=True).start()
    try:
        result = found.get(timeout=patience)
    except Empty:
        raise TimeoutError from None
    if isinstance(result, OSError):
        raise result
    return result


_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EINVAL, errno.EACCES})
"""Why no route leads to an address, of which an own one always has one; EINVAL is that of a link without its scope."""


_DOCUMENTATION = {socket.AF_INET: ("192.0.2.1", 0), socket.AF_INET6: ("2001:db8::1", 0)}
"""Addresses that no machine has: where one can be bound, every address can."""


def _is_own(family: socket.AddressFamily, address: Any) -> bool:
    """Return whether an address is one of this machine's own: what is sent there begins there too, or it can be bound.

    The kernel may send from the first address of a subnet to the second one of the same machine, which only binding
    shows. Where `ip_nonlocal_bind` lets any address be bound, such a second one is taken for another machine's.
    Raises OSError where that cannot be found out, as without a free descriptor: a later try to connect may have one.
    """
    mapped = getattr(ipaddress.ip_address(address[0]), "ipv4_mapped", None)
    if mapped is not None:
        family, address = socket.AF_INET, (str(mapped), address[1])
    with socket.socket(family, socket.SOCK_DGRAM) as route:
        try:
            route.connect(address)  # sends nothing
        except OSError as error:
            if error.errno in _NO_ROUTE:
                return False
            raise
        if route.getsockname()[0] == address[0]:
            return True
    return _can_bind(family, address) and not _can_bind(family, _DOCUMENTATION[family])


def _can_bind(family: socket.AddressFamily, address: Any) -> bool:
    """Return whether a socket can be bound to an address, at any port. Raises OSError for any other cause."""
    host, _, *scope = address
    with socket.socket(family, socket.SOCK_DGRAM) as bound:
        try:
            bound.bind((host, 0, *scope))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                return False
            raise
    return True


@contextmanager
def _as_network_error(late: type[Exception], failed: type[Exception]) -> Iterator[None]:
    """Raise errors of sockets as httpcore does."""
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:  # those of TLS among them
        raise failed(str(error)) from error


def _is_readable(connection: socket.socket) -> bool:
    """Return whether a connection has something to read, or has ended; an idle one has nothing."""
    if connection.fileno() < 0:
        return True
    connection.settimeout(0)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True
    return True


class BoundedTransport(httpx2.BaseTransport):
    """Sends requests of httpx, each within the exchange of its thread, over connections that are kept.

    Proxies are those of the environment, as httpx takes them.
    """

    def __init__(self, context: ssl.SSLContext, *, proxies: bool, kept: float) -> None:
        """Take how long an idle connection is kept, in seconds. Raises ValueError for a proxy that cannot be used."""
        self._current = _Current()
        self._proxies = ProxyRules.from_environment() if proxies else ProxyRules({}, ())
        pool: Mapping[str, Any] = {
            "ssl_context": context,
            "max_connections": _CONNECTIONS,
            "max_keepalive_connections": _KEPT_CONNECTIONS,
            "keepalive_expiry": kept,
            "network_backend": _Backend(self._current),
        }
        self._direct = httpcore2.ConnectionPool(**pool)
        self._pools = {address: _through(address, pool) for address in self._proxies.addresses}

    @contextmanager
    def within(self, exchange: Exchange) -> Iterator[None]:
        """Make and read requests of this thread within an exchange."""
        self._current.exchange = exchange
        try:
            yield
        finally:
            self._current.exchange = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request over a connection of the pool. Raises errors of httpcore."""
        proxy = self._proxies.proxy_for(request.url)
        pool = self._direct if proxy is None else self._pools[proxy]
        url = request.url
        response = pool.handle_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close all connections."""
        for pool in (self._direct, *self._pools.values()):
            pool.close()


class _Body(httpx2.SyncByteStream):
    """The body of an answer."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


def _through(address: str, pool: Mapping[str, Any]) -> httpcore2.ConnectionPool:
    """Return the connections through a proxy. Raises ValueError for one that is no HTTP proxy."""
    proxy = httpx2.Proxy(address)
    if proxy.url.scheme not in ("http", "https"):
        raise ValueError(f"a proxy of {proxy.url.scheme} is not spoken to")
    url = httpcore2.URL(
        scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
    )
    return httpcore2.HTTPProxy(proxy_url=url, proxy_auth=proxy.raw_auth, proxy_headers=proxy.headers.raw, **pool)


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """Which proxy a request goes through, by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""

    by_scheme: Mapping[str, str]
    without: tuple[str, ...]
    """Hosts, domains and networks that are reached without one; `*` is all of them."""

    @classmethod
    def from_environment(cls) -> ProxyRules:
        """Read them, and those of the system on Windows and macOS."""
        given = getproxies()
        by_scheme = {
            scheme: address if "://" in address else f"http://{address}"
            for scheme in ("http", "https", "all")
            if (address := given.get(scheme))
        }
        return cls(by_scheme, tuple(entry.strip().lower() for entry in given.get("no", "").split(",") if entry.strip()))

    @property
    def addresses(self) -> frozenset[str]:
        """All proxies."""
        return frozenset(self.by_scheme.values())

    def proxy_for(self, url: httpx2.URL) -> str | None:
        """Return the proxy of a request; None where it goes straight to its host."""
        host, port = url.host.lower(), url.port or {"https": 443}.get(url.scheme, 80)
        if any(_covers(entry, host, port) for entry in self.without):
            return None
        return self.by_scheme.get(url.scheme) or self.by_scheme.get("all")


def _covers(entry: str, host: str, port: int) -> bool:
    """Return whether an entry of NO_PROXY covers a host, as for curl and Go: by name, domain, address or network."""
    if entry == "*":
        return True
    entry = entry.rpartition("://")[2]
    address = _network(host)
    if address is not None:
        network = _network(entry)
        return network is not None and network.version == address.version and address[0] in network
    name, _, only = entry.partition(":")
    if only and only != str(port):
        return False
    if name.startswith(("*.", ".")):
        return host.endswith(f".{name.lstrip('*.')}")
    return host == name or host.endswith(f".{name}")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None
