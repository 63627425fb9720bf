"""The local server of the page: its own files and the model, and nothing else."""

import hmac
import json
import secrets
import socket
from asyncio import CancelledError, timeout
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from rejoint.explorer.page import assets, load_template
from rejoint.io.atomic import FileChangedError
from rejoint.io.schema import SchemaError, list_of, read_json, text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_REFUSALS = {403: "Forbidden", 404: "Not Found"}
_TYPES = {".js": "text/javascript", ".css": "text/css"}
_MOST_BODY = 1_000_000  # bytes of a request that saves names or sends evidence
_MOST_CONNECTIONS = 128
REQUEST_SECONDS = 10.0
"""Seconds in which the body of a request must have arrived."""
_SHUTDOWN_SECONDS = 1

#: What the page may ask of rejoint: ``keep`` takes the names of the classes when they were changed;
#: ``bound`` takes evidence as the page sends it and gives the ranges of the bars; ``count`` takes
#: evidence or a question and gives bars or an answer of counts and model together. The last two
#: give None for what is neither.
Call = Callable[[Any], Any]


def application(
    document: Mapping[str, Any], token: str, port: int, **calls: Call | None
) -> "Guard":
    """The web application: files and model below ``/token/``, for this machine's own page only.

    Parameters
    ----------
    document : mapping
        What :func:`rejoint.explorer.document` made.
    token : str
        First part of every address; without it there is nothing to see.
    port : int
        Port of the server, which requests must name as their host's.
    **calls : callable
        ``keep``, ``bound`` and ``count``; the page has no use for one that is left out.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.explorer import document
    >>> app = application(document(rj.datasets.asia()), "secret", 8000)
    >>> type(app).__name__
    'Guard'
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    texts = assets()
    names = {"can_save": "keep", "can_bound": "bound", "can_count": "count"}
    model = {**document, **{can: calls.get(name) is not None for can, name in names.items()}}

    async def front(request: "Request") -> "Response":
        return Response(load_template().render(title="rejoint"), media_type="text/html")

    async def static(request: "Request") -> "Response":
        name = request.path_params["name"]
        kind = _TYPES.get("." + name.rpartition(".")[2])
        if kind is None or name not in texts:
            return PlainTextResponse("Not Found", 404)
        return Response(texts[name], media_type=kind)

    async def send(request: "Request") -> "Response":
        return Response(json.dumps(model, ensure_ascii=False), media_type="application/json")

    async def save(request: "Request") -> "Response":
        names = await _names(request, len(b64decode(document["weights"]["f8"])) // 8)
        keep = calls.get("keep")
        if keep is None or names is None:
            return PlainTextResponse("Names of classes are a list of short texts", 400)
        try:
            keep(names)
        except FileChangedError as error:
            return PlainTextResponse(f"The names were not saved: {error}", 409)
        except (OSError, ValueError) as error:
            return PlainTextResponse(f"The names could not be saved: {error}", 500)
        model["class_names"] = names
        return PlainTextResponse("Saved")

    def reply(name: str) -> Callable[["Request"], Awaitable["Response"]]:
        async def send_reply(request: "Request") -> "Response":
            call, answer = calls.get(name), None
            if call is not None:
                answer = await run_in_threadpool(call, await _read_json(request))
            if answer is None:
                return PlainTextResponse("Evidence is a list of positions and likelihoods", 400)
            return JSONResponse(answer)

        return send_reply

    routes = [
        Route(f"/{token}/", front),
        Route(f"/{token}/static/{{name}}", static),
        Route(f"/{token}/model.json", send),
        Route(f"/{token}/class-names", save, methods=["POST"]),
        Route(f"/{token}/bounds", reply("bound"), methods=["POST"]),
        Route(f"/{token}/counts", reply("count"), methods=["POST"]),
    ]
    # Around everything, the answers to errors too.
    return Guard(Starlette(routes=routes), token=token, port=port)


async def _names(request: "Request", number: int) -> list[str] | None:
    """Names from a request, one for each class; None where it is not a list of short texts."""
    try:
        found: list[str] = list_of(text(most=200), size=number)(await _read_json(request), "names")
    except SchemaError:
        return None
    return found


async def _read_json(request: "Request") -> Any:
    """Contents of a request; None where it is too large or no JSON, or does not arrive."""
    from starlette.requests import ClientDisconnect

    if request.headers.get("content-type") != "application/json":
        return None
    data = b""
    try:
        async with timeout(REQUEST_SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > _MOST_BODY:
                    return None
        return read_json(data)
    except (SchemaError, TimeoutError, ClientDisconnect):
        return None


class Guard:
    """Accepts only requests of the page itself: right host, right origin, right token.

    Another site open in the same browser can send requests here too, or have its own name point
    here (DNS rebinding): neither knows the token, and the headers that the browser adds tell.

    Examples
    --------
    >>> Guard(None, token="t", port=1).hosts
    ('127.0.0.1:1', 'localhost:1')
    """

    def __init__(self, app: "ASGIApp | None", *, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer what is refused, pass the rest on."""
        from starlette.responses import PlainTextResponse

        refusal = self.refusal(scope) if scope["type"] == "http" else 0
        answer: Any = PlainTextResponse(_REFUSALS[refusal], refusal) if refusal else self.app
        with suppress(CancelledError):  # the server ends
            await answer(scope, receive, send)

    def refusal(self, scope: Mapping[str, Any]) -> int:
        """Return the status to refuse a request with; 0 accepts it.

        Examples
        --------
        >>> Guard(None, token="t", port=1).refusal({"headers": [], "path": "/", "method": "GET"})
        403
        """
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if headers.get(b"host", b"").decode("latin-1") not in self.hosts:
            return 403
        origins = [f"http://{host}" for host in self.hosts]
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin not in origins and (origin or scope["method"] not in ("GET", "HEAD")):
            return 403  # what changes something must say where it comes from
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return 403
        first = str(scope["path"]).removeprefix("/").partition("/")[0]
        return 0 if hmac.compare_digest(first.encode(), self.token.encode()) else 404


def make_server(app: "Guard") -> Any:
    """Return the server of an application, with limits and a quick end.

    Examples
    --------
    >>> make_server(Guard(None, token="t", port=1)).config.timeout_graceful_shutdown
    1
    """
    import uvicorn  # an extra

    config = uvicorn.Config(
        app,
        http="h11",
        headers=list(HEADERS.items()),
        limit_concurrency=_MOST_CONNECTIONS,
        log_level="warning",
        server_header=False,
        access_log=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    return uvicorn.Server(config)


def serve(
    document: Mapping[str, Any],
    *,
    port: int = 0,
    ready: Callable[[str], None] | None = None,
    **calls: Call | None,
) -> None:
    """Show a document on 127.0.0.1 until Ctrl-C.

    Parameters
    ----------
    document : mapping
        What :func:`rejoint.explorer.document` made.
    port : int
        Port; 0 takes a free one.
    ready : callable, optional
        Called with the address, token included.
    **calls : callable
        What the page may ask: ``keep``, ``bound`` and ``count``, see :func:`application`.

    Raises
    ------
    ImportError
        Without the extra ``explore``.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.explorer import document, serve
    >>> serve(document(rj.datasets.asia()), ready=print)  # doctest: +SKIP
    http://127.0.0.1:40123/a8Xk.../
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "The explorer is served by starlette and uvicorn: pip install 'rejoint[explore]'. "
            "Without them, `rejoint export MODEL -o page.html` makes the same page as a file."
        ) from error
    token = secrets.token_urlsafe(18)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1", port))
        own.listen()  # who is told the address may ask at once, and is answered soon
        port = own.getsockname()[1]
        if ready is not None:
            ready(f"http://127.0.0.1:{port}/{token}/")
        app = application(document, token, port, **calls)
        make_server(app).run(sockets=[own])
