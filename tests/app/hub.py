"""A small Hub on loopback: answers as the Hugging Face Hub does for a few repositories, for as long as a test runs."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

TOKEN = "hf_a_token_of_this_test"


class Hub:
    """``repositories``: id -> {file name: bytes}. ``gated`` ids want ``TOKEN``; ``ranges`` off ignores Range."""

    def __init__(self, repositories, *, gated=(), ranges=True, broken=False):
        self.repositories = repositories
        self.gated = set(gated)
        self.ranges = ranges
        self.broken = broken
        self.asked = []
        self.sent = 0
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.answer(self)

            def do_HEAD(self):
                hub.answer(self)

            def log_message(self, *_args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_wrong):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)

    # ---------------------------------------------------------------- answers

    def answer(self, request):
        path = unquote(request.path.partition("?")[0])
        self.asked.append((path, request.headers.get("Range"), request.headers.get("Authorization")))
        if self.broken:
            self.send(request, 503, b"{}", {})
            return
        api = path.startswith("/api/models/")
        name = "/".join(path.removeprefix("/api/models/" if api else "/").split("/")[:2])
        if name not in self.repositories:
            self.send(request, 404, b'{"error":"Repository not found"}', {"X-Error-Code": "RepoNotFound"})
        elif name in self.gated and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.send(request, 401, b'{"error":"gated"}', {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
        elif api:
            self.send(request, 200, self.listing(name), {"Content-Type": "application/json"})
        else:
            self.file(request, name, path.partition("/resolve/main/")[2])

    def listing(self, name):
        files = [{"rfilename": file} for file in self.repositories[name]]
        table = {
            "_id": "1",
            "id": name,
            "modelId": name,
            "sha": "0" * 40,
            "siblings": files,
            "tags": [],
            "private": False,
        }
        return json.dumps(table).encode()

    def file(self, request, name, file):
        content = self.repositories[name].get(file)
        if content is None:
            self.send(request, 404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        wanted = request.headers.get("Range", "")
        if not self.ranges or not wanted.startswith("bytes="):
            self.send(request, 200, content, {})
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = content[int(first) : int(last) + 1]
        place = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
        self.send(request, 206, part, {"Content-Range": place})

    def send(self, request, status, body, headers):
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        for key, value in headers.items():
            request.send_header(key, value)
        request.end_headers()
        if request.command != "HEAD":
            try:
                request.wfile.write(body)
                self.sent += len(body)
            except (BrokenPipeError, ConnectionResetError):  # a client that has seen enough
                pass
