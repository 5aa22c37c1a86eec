#!/usr/bin/env python3
"""http_server.py: a web server with faults, for tests.  Prints its port, and ends with its input.

/MODE/.../vN is a value of N bytes, byte i of it (i * 7 + i // 300) % 256; any other name has none.

    ok          ranges, as they should be
    whole       the whole value for a range
    nosuffix    likewise, but only for the last bytes
    short/K     K times the body ends at its half, and the connection with it; then ok
    code/C/K    K times the code C; then ok
    after/K     likewise 503, with a Retry-After of one second
    reset/K     K times the connection ends before an answer; then ok
    slow/K      K times nothing comes for 5 seconds; then ok
    vanish/K    K times ok, then 404
    changing/K  another ETag each of the first K times
    chunked     the whole value, its size untold
    endless     likewise, again and again
    coded       a Content-Encoding
    lie         other bytes than asked for
    nohead      405 for HEAD
    dated       a date and no ETag
    moved       a redirection to ok
    secret      401 without "Authorization: Bearer secret"
    link/MS/MB  an answer begins after MS milliseconds, and a connection gets MB megabytes a second;
                byte i is i % 256

/files/PATH is a file below the directory that the first argument names, with ranges.

/stat tells connections and requests so far.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import os
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

times = collections.Counter()
lock = threading.Lock()
count = {"connections": 0, "requests": 0}


def value(size):
    return bytes((i * 7 + i // 300) & 255 for i in range(size))


values = {}
links = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def setup(self):
        super().setup()
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with lock:
            count["connections"] += 1

    def log_message(self, *args):
        pass

    def plain(self, code, body=b"", **headers):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.split("?")[0]
        mode, *rest = path.strip("/").split("/")
        if mode == "stat":
            return self.plain(200, f"{count['connections']} {count['requests']}".encode())
        with lock:
            count["requests"] += 1
            turn = times[path]
            times[path] += 1
        if mode == "files":
            name = os.path.join(sys.argv[1], urllib.parse.unquote("/".join(rest)))
            if not os.path.isfile(name):
                return self.plain(404)
            with open(name, "rb") as file:
                return self.give("ok", file.read(), 0, 0)
        many = int(rest[-2]) if len(rest) > 1 and rest[-2].isdigit() else 0
        name = re.fullmatch(r"v(\d+)", rest[-1]) if rest else None
        if not name:
            return self.plain(404)
        size = int(name.group(1))
        if mode == "link":
            self.rate = int(rest[1]) * 1e6
            time.sleep(int(rest[0]) / 1e3)
            with lock:
                if size not in links:
                    links[size] = memoryview(bytes(range(256)) * (size // 256 + 1))[:size]
            return self.give(mode, links[size], 0, 0)
        with lock:
            data = values.setdefault(size, None) or values.__setitem__(size, value(size)) \
                or values[size]
        if turn < many:
            if mode == "code":
                return self.plain(int(rest[0]), b"an error page")
            if mode == "after":
                return self.plain(503, Retry_After="1")
            if mode == "slow":
                time.sleep(5)
            if mode == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                           struct.pack("ii", 1, 0))
                self.close_connection = True
                return self.connection.close()
        if mode == "vanish" and turn >= many:
            return self.plain(404)
        if mode == "secret" and self.headers.get("Authorization") != "Bearer secret":
            return self.plain(401)
        if mode == "moved":
            return self.plain(302, Location=self.path.replace("/moved/", "/ok/"))
        if mode == "nohead" and self.command == "HEAD":
            return self.plain(405)
        self.give(mode, data, turn, many)

    def give(self, mode, data, turn, many):
        size = len(data)
        first, end = 0, size
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        suffix = asked and not asked.group(1)
        if mode in ("whole", "chunked", "endless") or (mode == "nosuffix" and suffix):
            asked = None
        if suffix and asked:
            first = max(0, size - int(asked.group(2)))
        elif asked:
            first = int(asked.group(1))
            end = min(size, int(asked.group(2) or size - 1) + 1)
        if asked and first >= end:
            return self.plain(416, Content_Range=f"bytes */{size}")
        self.send_response(206 if asked else 200)
        body = data[first:end]
        if mode == "lie" and asked:
            first, end = first + 1, end + 1
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        if mode == "coded":
            self.send_header("Content-Encoding", "gzip")
        if mode == "dated":
            self.send_header("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
        else:
            tag = min(turn, many) if mode == "changing" else 0
            self.send_header("ETag", f'"tag{tag}"')
        if mode in ("chunked", "endless"):
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while True:
                for at in range(0, len(body), 1000):
                    piece = body[at : at + 1000]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                if mode == "chunked":
                    break
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if mode == "short" and turn < many:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        if mode == "link":
            began = time.monotonic()
            for at in range(0, len(body), 65536):
                time.sleep(max(0, began + at / self.rate - time.monotonic()))
                self.wfile.write(body[at : at + 65536])
            return
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *args):
        pass  # clients go when they have enough


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.buffer.read()
os._exit(0)
