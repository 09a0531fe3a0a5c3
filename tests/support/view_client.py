"""Starts `fovea view` and speaks with it as a browser would, or as nobody should.

    with View("a.npy", folder=folder) as view:
        plane = view.plane(image=0, axis="z", index=3)       # a numpy array
        view.json("/api/session")
        view.raw(b"GET / HTTP/1.1\\r\\n\\r\\n")
"""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import urllib.parse

import numpy

from fovea_test import FOVEA, Skip

STATUS_PATIENCE = 120


def need_plugin():
    """Skips where the server could not be built."""
    plugins = pathlib.Path(os.environ.get("FOVEA_PLUGINS", pathlib.Path(FOVEA).parent))
    if not (plugins / "fovea-http.so").exists():
        raise Skip("the server is not built: libmicrohttpd is missing (scripts/bootstrap.sh view)")


class View:
    """A running server. The cookie is taken from the first request."""

    def __init__(self, *arguments, folder, environment=None):
        need_plugin()
        self.process = subprocess.Popen([FOVEA, "view", *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **(environment or {})))
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            raise AssertionError(f"no link: {self.process.communicate()[1]}")
        parts = urllib.parse.urlsplit(self.link)
        self.host, self.port = parts.hostname, parts.port
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]
        self.cookie = f"fovea-{self.port}={self.token}"
        self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.connection:
            self.connection.close()
        self.stop()

    def stop(self):
        """As Ctrl-C does; gives the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=STATUS_PATIENCE)
        return self.process.returncode

    def get(self, target, method="GET", headers=None, cookie=True):
        """Status, headers and body of a request on a kept connection."""
        if not self.connection:
            self.connection = http.client.HTTPConnection(self.host, self.port, timeout=STATUS_PATIENCE)
        all_headers = dict({"Cookie": self.cookie} if cookie else {}, **(headers or {}))
        for attempt in range(2):
            try:
                self.connection.request(method, target, headers=all_headers)
                answer = self.connection.getresponse()
                return answer.status, dict(answer.getheaders()), answer.read()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, http.client.CannotSendRequest):
                self.connection.close()  # it was idle for too long, or refused and closed
                if attempt:
                    raise
        return None

    def json(self, path, status=200, **fields):
        """The JSON of an answer, which must have this status."""
        target = path + ("?" + urllib.parse.urlencode(fields, doseq=True) if fields else "")
        code, _, body = self.get(target)
        assert code == status, f"{target}: {code}, not {status}: {body[:300]!r}"
        return json.loads(body)

    def voxels(self, path, **fields):
        """The array of an answer in voxels."""
        target = path + "?" + urllib.parse.urlencode(fields)
        code, headers, body = self.get(target)
        assert code == 200, f"{target}: {code}: {body[:300]!r}"
        shape = [int(n) for n in headers["X-Fovea-Shape"].split(",")]
        return numpy.frombuffer(body, headers["X-Fovea-Dtype"]).reshape(shape)

    def plane(self, **fields):
        return self.voxels("/api/plane", **fields)

    def open(self):
        """A bare connection."""
        return socket.create_connection((self.host, self.port), timeout=STATUS_PATIENCE)

    def raw(self, data):
        """All that is answered to these bytes until the connection is closed."""
        with self.open() as connection:
            connection.sendall(data)
            answer = b""
            while True:
                try:
                    part = connection.recv(65536)
                except ConnectionResetError:
                    return answer
                if not part:
                    return answer
                answer += part

    def request(self, line, *headers, cookie=True):
        """The bytes of a request that is well formed but for what is said here."""
        lines = [line, *headers]
        if not any(header.lower().startswith("host:") for header in headers):
            lines.append(f"Host: {self.host}:{self.port}")
        if cookie:
            lines.append(f"Cookie: {self.cookie}")
        return ("\r\n".join(lines + ["Connection: close", "", ""])).encode("latin-1")
