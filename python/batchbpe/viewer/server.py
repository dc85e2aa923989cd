"""Serve the page and its API to this machine: a starlette application, run by uvicorn.

A page of another site must not be able to read what is loaded here. So the server listens on the loopback interface,
and a request is refused unless its Host is an address of the server (against DNS rebinding) and its Origin, if it has
one, is the server itself. Nothing is written to disk.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, UserError, os_error
from . import api
from .workspace import Workspace

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
MAX_BODY = 8 << 20
"""Largest request, in bytes."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Guard:
    """ASGI middleware that refuses requests from other sites, and adds headers to every response."""

    def __init__(self, app: Any, host: str) -> None:
        """Protect an application that is served under a host name or address."""
        self._app, self._host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        if scope["type"] != "http":  # there are no websockets
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers)
        if refusal:
            await _failure(403, refusal)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _refusal(self, headers: dict[str, str]) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        name = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@]+))(?::[0-9]+)?", host, re.IGNORECASE)
        if not name or not _is_own((name[1] or name[2]).lower(), self._host):
            return f"the host {host!r} is not an address of this server"
        if origin is not None and origin != f"http://{host}":
            return f"requests from {origin!r} are refused"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return "requests from other sites are refused"
        return ""


def _is_own(name: str, host: str) -> bool:
    """Return whether a host name of a request can be that of the server, and not that of another site.

    >>> _is_own("localhost", "127.0.0.1"), _is_own("example.org", "127.0.0.1"), _is_own("10.0.0.7", "0.0.0.0")
    (True, False, True)
    """
    if name == "localhost" or name == host.lower():
        return True
    try:
        address, bound = ipaddress.ip_address(name), ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or not bound.is_loopback  # no site can use an address that is not its own


def application(space: Workspace, host: str = "127.0.0.1") -> Starlette:
    """Return the application that shows a workspace.

    >>> from starlette.testclient import TestClient
    >>> client = TestClient(application(Workspace()), base_url="http://127.0.0.1")
    >>> client.get("/api/workspace").json()["models"]
    []
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import FileResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    def question(answer: Callable[[Workspace, api.Parameters], api.Answer]) -> Callable[[Request], Response]:
        """Return an endpoint that runs in a thread, since starlette calls it so unless it is a coroutine."""
        return lambda request: _answer(answer, space, request.query_params)

    async def encode(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        body = await _body(request)
        if body is None:
            return _failure(413, f"the request must have at most {MAX_BODY >> 20} MiB; shorten the text")
        if request.headers.get("content-type") != "application/json":
            return _failure(415, "the request must be of the type application/json")
        return await run_in_threadpool(_answer, api.encode, space, body)

    routes = [
        Route("/", lambda _: FileResponse(STATIC / "index.html")),
        Route("/api/workspace", question(lambda space, _: api.workspace(space))),
        Route("/api/encode", encode, methods=["POST"]),
        Route("/api/token", question(api.token)),
        Route("/api/vocabulary", question(api.vocabulary)),
        Route("/api/chunks", question(api.chunks)),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, host=host)])


async def _body(request: Request) -> bytes | None:
    """Read the body of a request, or return None if it is too long."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return bytes(body)


def _answer(answer: Callable[[Workspace, api.Parameters], api.Answer], space: Workspace, given: Any) -> Response:
    from starlette.responses import Response

    try:
        if isinstance(given, bytes):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                given = None
            if not isinstance(given, dict):
                return _failure(400, "the request must be a JSON object")
        # Unlike starlette's JSONResponse, this can also write lone surrogates.
        content = json.dumps(answer(space, given), separators=(",", ":"))
    except UserError as error:
        return _failure(400, str(error))
    return Response(content, media_type="application/json")


def _failure(status: int, message: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": message}, status)


def check_installed() -> None:
    """Raise unless the packages of the extra `viewer` are installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ImportError("the viewer requires starlette and uvicorn; run pip install 'batchbpe[viewer]'") from None


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Port 0 is any free port.

    >>> with listen("127.0.0.1", 0) as listening:
    ...     address(listening)[:17]
    'http://127.0.0.1:'
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (socket.gaierror, UnicodeError):
        raise ArgumentError("host", host, "must be a host name or address of this machine") from None
    except OSError as error:
        found = os_error(error, f"cannot listen on {host}, port {port}")
        raise OSError(f"{found}; use --port 0 for any free port") from None


def address(listening: socket.socket) -> str:
    """Return the URL of a server."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def serve(space: Workspace, listening: socket.socket, host: str) -> None:
    """Serve a workspace until Ctrl-C."""
    import uvicorn

    config = uvicorn.Config(
        application(space, host), log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listening])
