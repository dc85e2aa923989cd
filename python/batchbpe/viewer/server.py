"""Serve the page and its API to this machine: a starlette application, run by uvicorn.

Other websites must not be able to read what is loaded here. So the server listens on the loopback interface, and a
request is refused unless its Host is an address of the server (against DNS rebinding) and its Origin, if it has one, is
the server itself. Other sites can link to the page, but cannot embed it. Nothing is written to disk.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, UserError, os_error
from ..patterns import PatternError
from . import api
from .parameters import Parameters
from .work import MAX_SECONDS, Cancelled, Limit, Message, Receive, Send, Worker
from .workspace import MAX_TEXT, Workspace

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
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
Question = Callable[[Workspace, Parameters], api.Answer]


class Guard:
    """ASGI middleware that refuses requests from other sites, and adds headers to every response."""

    def __init__(self, app: Any, bound: str, names: Collection[str]) -> None:
        """Protect an application that listens on an address and has host names."""
        self._app, self._bound, self._names = app, bound, names

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        if scope["type"] != "http":  # there are no websockets
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers, is_page=scope["path"] == "/" and scope["method"] == "GET")
        if refusal:
            await _failure(403, refusal)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _refusal(self, headers: dict[str, str], *, is_page: bool) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        name = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/@]+))(?::[0-9]+)?", host, re.IGNORECASE)
        if not name or not _is_own((name[1] or name[2]).lower(), self._bound, self._names):
            return f"the host {host!r} is not an address of this server"
        if origin is not None and origin != f"http://{host}":
            return f"requests from {origin!r} are refused"
        is_link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not (is_page and is_link):
            return "requests from other sites are refused"
        return ""


def _is_own(name: str, bound: str, names: Collection[str]) -> bool:
    """Return whether a host name in a request can be that of the server, and not that of another site."""
    if name == "localhost" or name in names:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    # Another site can have any name, but not the address of this server.
    return address.is_loopback or not ipaddress.ip_address(bound).is_loopback


def application(space: Workspace, bound: str = "127.0.0.1", *names: str) -> Starlette:
    """Return the application that shows a workspace, for a server that listens on an address and has host names.

    >>> from starlette.testclient import TestClient
    >>> client = TestClient(application(Workspace()), base_url="http://127.0.0.1")
    >>> client.get("/api/workspace").json()["models"]
    []
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import FileResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    # Separate workers, so that a slow text does not delay other requests.
    texts, questions = Worker(), Worker()

    def question(answer: Question) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await _respond(questions, request, answer, space, request.query_params)

        return endpoint

    async def encode(request: Request) -> Response:
        # Browsers do not allow other sites to send this type. In JSON, a character could take up to six bytes.
        if request.headers.get("content-type") != "application/octet-stream":
            return _failure(415, "the content type must be application/octet-stream")
        try:
            body = await _body(request)
        except ClientDisconnect:
            return _failure(400, "the request is incomplete")
        if body is None:
            return _failure(413, f"the text must have at most {MAX_TEXT >> 20} MiB")
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            return _failure(400, f"the text is invalid UTF-8 at byte {error.start}")
        return await _respond(texts, request, api.encode, space, {**request.query_params, "text": text})

    def limited(path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str = "GET") -> Route:
        busy = _failure(503, "the server is busy with other requests; try again")
        return Route(path, endpoint, methods=[method], middleware=[Middleware(Limit, busy=busy)])

    routes = [
        Route("/", lambda _: FileResponse(STATIC / "index.html")),
        limited("/api/workspace", question(lambda space, _: api.workspace(space))),
        limited("/api/encode", encode, "POST"),
        limited("/api/token", question(api.token)),
        limited("/api/vocabulary", question(api.vocabulary)),
        limited("/api/diff", question(api.diff)),
        limited("/api/chunks", question(api.chunks)),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, bound=bound, names=[name.lower() for name in names])])


async def _body(request: Request) -> bytes | None:
    """Read the body of a request, or return None if it is too long."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_TEXT:
            return None
    return bytes(body)


async def _respond(worker: Worker, request: Request, answer: Question, space: Workspace, given: Parameters) -> Response:
    from starlette.responses import Response

    try:
        content = await worker.run(request.receive, _content, answer, space, given)
    except (UserError, PatternError) as error:
        return _failure(400, str(error))
    except Cancelled:
        return _failure(503, f"this takes more than {MAX_SECONDS} seconds; use a shorter text")
    return Response(content, media_type="application/json")


def _content(answer: Question, space: Workspace, given: Parameters) -> bytes:
    # Unlike starlette's JSONResponse, this can write lone surrogates.
    return json.dumps(answer(space, given), separators=(",", ":")).encode()


def _failure(status: int, message: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": message}, status)


def check_installed() -> None:
    """Raise unless the dependencies of the viewer are installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ImportError("the viewer requires starlette and uvicorn; run pip install 'batchbpe[viewer]'") from None


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Port 0 is any free port.

    >>> with listen("127.0.0.1", 0) as listening:
    ...     addresses(listening)[0][:17]
    'http://127.0.0.1:'
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        if not isinstance(error, OSError) or isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ArgumentError("host", host, "must be a host name or address of this machine") from None
        found = os_error(error, f"cannot listen on {host}, port {port}")
        raise OSError(f"{found}; use --port 0 for any free port") from None


def addresses(listening: socket.socket) -> list[str]:
    """Return the URLs of a server: for this machine, and for others if it listens on all addresses."""
    bound, port = listening.getsockname()[:2]
    hosts = ["::1" if ":" in bound else "127.0.0.1", socket.gethostname()] if _is_any(bound) else [bound]
    return [f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/" for host in hosts]


def _is_any(bound: str) -> bool:
    return ipaddress.ip_address(bound).is_unspecified


def serve(space: Workspace, listening: socket.socket, host: str) -> None:
    """Serve a workspace until Ctrl-C."""
    import uvicorn

    bound = listening.getsockname()[0]
    names = [host, *([socket.gethostname()] if _is_any(bound) else [])]
    # Without a timeout, uvicorn cancels all requests when it stops, which cancels their work.
    config = uvicorn.Config(
        application(space, bound, *names), log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=0
    )
    server = uvicorn.Server(config)
    # Requests that Ctrl-C cancels are not errors.
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
    server.run(sockets=[listening])
