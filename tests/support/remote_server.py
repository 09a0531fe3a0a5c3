"""A small server on loopback for tests: files of a folder by http with ranges, and the same as buckets of S3, whose signatures
(AWS Signature Version 4) it checks by itself.

    with serve(folder, faults={"/a.tif": "truncated"}, key=("KEY", "SECRET")) as server:
        run("info", f"{server.url}/a.tif", ...)

faults, by path: "no-range", "neither" (no range and no HEAD), "huge" (claims 10^15 bytes), "slow" (half of the bytes, and then
nothing for some seconds), "moved" (redirects to the same name below /elsewhere), "round" (redirects to itself), "late" (503 for
every one), "query" (404 unless the address has ?token=right), "truncated", "busy" (503 for two requests), "reset" (the
connection breaks for two requests), "broken" (500 for every one), "denied", "changed" (the ETag is new every time), "no-head",
"undated" (no ETag), "dated" (a time in its place, which is new every time), "longer" (no ETag, and ranges tell of a growing
file), "shifted" (no ETag, and ranges begin elsewhere). The name of a folder with a slash at its end stands for all that lies in
it. With a key every request must be signed with it. Pages of other addresses may read what is here. server.log holds (method,
path, range) of every request.
"""
import contextlib
import hashlib
import hmac
import http.server
import io
import os
import re
import socket
import struct
import threading
import urllib.parse


def signature(method, path, headers, signed, date, scope, secret):
    """Of a request with an unsigned payload, as Amazon describes it."""
    path, _, query = path.partition("?")
    query = "&".join(sorted(query.split("&")))
    canonical = "\n".join([method, urllib.parse.quote(path, safe="/-_.~%"), query,
                           *(f"{name}:{' '.join(headers.get(name, '').split())}" for name in signed), "", ";".join(signed),
                           headers.get("x-amz-content-sha256", "")])
    text = "\n".join(["AWS4-HMAC-SHA256", date, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (*scope[:3], "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body=b"", headers=(), length=None):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def is_signed(self):
        given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)",
                             self.headers.get("Authorization", ""))
        if not given:
            return False
        user, *scope = given[1].split("/")
        signed = given[2].split(";")
        wanted = {"host", "x-amz-date", "x-amz-content-sha256"}
        key, secret = self.server.key
        made = signature(self.command, self.path, self.headers, signed, self.headers["x-amz-date"], scope, secret)
        arrived = all(name in self.headers for name in signed)
        return user == key and wanted <= set(signed) and arrived and hmac.compare_digest(made, given[3])

    def file(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        above = [path[:i + 1] for i, letter in enumerate(path) if letter == "/"]
        fault = next((self.server.faults[name] for name in [path, *above] if name in self.server.faults), "")
        self.server.log.append((self.command, path, self.headers.get("Range", "")))
        if self.server.key and not self.is_signed() or fault == "denied":
            self.answer(403, b"<Error>SignatureDoesNotMatch</Error>")
        elif fault == "busy" and sum(entry[1] == path for entry in self.server.log) < 3:
            self.answer(503)
        elif fault == "reset" and sum(entry[1] == path for entry in self.server.log) < 3:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()  # with a reset, since nothing lingers
            self.close_connection = True
            self.wfile = io.BytesIO()
        elif fault in ("broken", "late"):
            self.answer(500 if fault == "broken" else 503)
        elif fault in ("moved", "round"):
            self.answer(302, headers=[("Location", ("/elsewhere" if fault == "moved" else "") + self.path)])
        elif fault == "query" and urllib.parse.urlsplit(self.path).query != "token=right/x.y":
            self.answer(404)
        elif fault in ("no-head", "neither") and self.command == "HEAD":
            self.answer(405)
        else:
            return self.server.folder + path, fault
        return None, fault

    def list_bucket(self, name, query):
        """ListObjectsV2 of Amazon, in pages of three, keys as they are asked for."""
        prefix, token = query["prefix"][0], query.get("continuation-token", [""])[0]
        keys = sorted(os.path.relpath(os.path.join(folder, file), name) for folder, _, files in os.walk(name) for file in files)
        found = sorted({prefix + key[len(prefix):].partition("/")[0] + "/" * ("/" in key[len(prefix):])
                        for key in keys if key.startswith(prefix)})
        page = [key for key in found if key > token][:3]
        more = bool(page) and page[-1] != found[-1]
        parts = [f"<IsTruncated>{str(more).lower()}</IsTruncated><Prefix>{urllib.parse.quote_plus(prefix)}</Prefix>"]
        for key in page:
            quoted = urllib.parse.quote_plus(key)
            parts.append(f"<CommonPrefixes><Prefix>{quoted}</Prefix></CommonPrefixes>" if key.endswith("/") else
                         f"<Contents><Key>{quoted}</Key><Size>1</Size></Contents>")
        if more:
            parts.append(f"<NextContinuationToken>{page[-1]}</NextContinuationToken>")
        self.answer(200, f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode())

    def do_GET(self):
        name, fault = self.file()
        if not name:
            return
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in query:
            self.list_bucket(name, query)
            return
        if not os.path.isfile(name):
            self.answer(404, b"nothing here", [("Access-Control-Allow-Origin", "*")])
            return
        with open(name, "rb") as file:
            data = file.read()
        tag = os.stat(name).st_mtime_ns + (len(self.server.log) if fault == "changed" else 0)
        told = {"dated": [("Last-Modified", f"time {len(self.server.log)}")], "longer": [], "shifted": [], "undated": []}
        headers = [*told.get(fault, [("ETag", f'"{tag}"')]), ("Accept-Ranges", "bytes"), ("Access-Control-Allow-Origin", "*"),
                   ("Access-Control-Expose-Headers", "*")]
        if self.headers.get("If-Match", f'"{tag}"') != f'"{tag}"':
            self.answer(412)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)|bytes=-(\d+)", self.headers.get("Range", ""))
        if fault == "huge":
            self.answer(200, b"", headers, 10 ** 15)
            self.close_connection = True
            return
        if fault == "slow" and self.command == "GET":
            self.answer(200, data[:len(data) // 2], headers, len(data))
            self.wfile.flush()
            self.server.over.wait(20)
            self.close_connection = True
            return
        if not wanted or fault in ("no-range", "neither"):
            self.answer(200, data, headers)
            return
        start = int(wanted[1]) if wanted[1] else max(len(data) - int(wanted[3]), 0)
        part = data[start:int(wanted[2]) + 1 if wanted[2] else None]
        told = start + 16 * (fault == "shifted"), len(data) + len(self.server.log) * (fault == "longer")
        headers.append(("Content-Range", f"bytes {told[0]}-{told[0] + len(part) - 1}/{told[1]}"))
        if fault == "truncated":
            self.answer(206, part[:len(part) // 2], headers, len(part))
            self.close_connection = True
        else:
            self.answer(206, part, headers)

    do_HEAD = do_GET

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name, _ = self.file()
        if not name:
            return
        self.server.asked.append(self.path)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as file:
            file.write(body)
        self.answer(200)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that hangs up is none of our business."""


@contextlib.contextmanager
def serve(folder, faults=None, key=None):
    server = Server(("127.0.0.1", 0), Handler)
    server.folder, server.faults, server.key, server.log = str(folder), faults or {}, key, []
    server.over, server.asked = threading.Event(), []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
