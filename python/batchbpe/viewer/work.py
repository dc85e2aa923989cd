"""Bound the total work of all requests: how many are in progress, how many run, and for how long.

Work runs in threads, which signals do not reach and which continue after the client has disconnected. So the work of a
request is cancelled when its answer is no longer needed: when the client disconnects, after `MAX_SECONDS`, and when the
server stops, which cancels its tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from ..util.cancellation import Cancellation

MAX_REQUESTS = 8
"""Maximum number of requests of one kind in progress, until the last byte of the answer. A browser sends six."""
MAX_SECONDS = 20
"""Maximum time for the work of a request. It exceeds the limit of a pattern search, whose error message is better."""
PIECE = 1 << 16
"""An answer is sent in pieces of this size, so that a request stays in progress until the client has read it."""
P = ParamSpec("P")
T = TypeVar("T")
Message = MutableMapping[str, Any]
"""An ASGI message or scope."""
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]


class Cancelled(Exception):
    """The answer is no longer needed, or the work took too long."""


class Worker:
    """A thread that runs one function at a time.

    >>> asyncio.run(Worker().run(asyncio.Event().wait, sum, [1, 2]))
    3
    """

    def __init__(self) -> None:
        """Start no thread yet."""
        self._pool = ThreadPoolExecutor(1)

    async def run(self, receive: Receive, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function; raise `Cancelled` after `MAX_SECONDS` or when `receive` reports that the client is gone."""
        loop, cancellation = asyncio.get_running_loop(), Cancellation()

        def call() -> T:
            loop.call_soon_threadsafe(loop.call_later, MAX_SECONDS, cancellation.cancel)
            try:
                with cancellation:
                    return function(*args, **kwargs)
            except KeyboardInterrupt:  # it would end the event loop
                raise Cancelled from None

        work = loop.run_in_executor(self._pool, call)
        gone = asyncio.ensure_future(_disconnect(receive))
        both: set[asyncio.Future[Any]] = {work, gone}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise Cancelled
        finally:
            cancellation.cancel()
            work.cancel()
            gone.cancel()


async def _disconnect(receive: Receive) -> None:
    """Wait until a client whose request was received disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Limit:
    """ASGI middleware that answers `busy` while `MAX_REQUESTS` requests to an application are in progress."""

    def __init__(self, app: Any, busy: Any) -> None:
        """Protect an application."""
        self._app, self._busy = app, busy
        self._in_progress = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_in_pieces(message: Message) -> None:
            body, more = message.get("body", b""), message.get("more_body", False)
            if len(body) <= PIECE:
                await send(message)
                return
            for end in range(PIECE, len(body) + PIECE, PIECE):
                await send({**message, "body": body[end - PIECE : end], "more_body": more or end < len(body)})

        if self._in_progress >= MAX_REQUESTS:
            while (await receive()).get("more_body"):  # a client that is still sending would not read the answer
                pass
            await self._busy(scope, receive, send)
            return
        self._in_progress += 1
        try:
            await self._app(scope, receive, send_in_pieces)
        finally:
            self._in_progress -= 1
