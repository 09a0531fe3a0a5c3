"""The server of `fovea view` gives nothing to whom it should not, and nobody keeps it from serving others."""
import gzip
import os
import pathlib
import socket
import sys
import threading
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import main, run, test, wait_for
from view_client import View


def shown(folder):
    numpy.save(pathlib.Path(folder) / "a.npy", numpy.arange(24 * 500 * 500, dtype=numpy.uint16).reshape(24, 500, 500))
    return View("a.npy", folder=folder)


def status(answer):
    """Of raw bytes; 0: the connection was closed without one."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0


def alive(view):
    assert view.json("/api/session")["images"][0]["name"] == "a.npy"


# ---------------------------------------------------------------- who may ask

@test
def the_link_sets_a_cookie_and_nothing_else_opens(folder):
    with shown(folder) as view:
        assert view.host == "127.0.0.1" and len(view.token) == 32 and int(view.token, 16) >= 0
        code, headers, _ = view.get(f"/?token={view.token}", cookie=False)
        assert code == 303 and headers["Location"] == "/"
        cookie = headers["Set-Cookie"]
        assert cookie.startswith(f"fovea-{view.port}={view.token};") and "HttpOnly" in cookie and "SameSite=Strict" in cookie
        for path in ("/", "/app.js", "/app.css", "/api/session", "/api/plane?image=0", "/zarr/0/.zattrs", "/nothing"):
            assert view.get(path, cookie=False)[0] == 401, path
        for wrong in (view.token[:-1], view.token[:-1] + "x", "", view.token + "0", "0" * 32):
            assert view.get(f"/?token={wrong}", cookie=False)[0] == 401, wrong
            assert view.get("/api/session", headers={"Cookie": f"fovea-{view.port}={wrong}"}, cookie=False)[0] == 401, wrong
        assert view.get(f"/api/session?token={view.token}", cookie=False)[0] == 401
        assert view.get("/api/session", headers={"Cookie": f"fovea-1={view.token}"}, cookie=False)[0] == 401
        assert view.get("/api/session", headers={"Cookie": f"other=1; {view.cookie}; more=2"}, cookie=False)[0] == 200
        assert view.get("/", cookie=True)[0] == 200


@test
def two_servers_have_two_keys(folder):
    with shown(folder) as one, shown(folder) as other:
        assert one.token != other.token and one.port != other.port
        assert other.get("/api/session", headers={"Cookie": one.cookie}, cookie=False)[0] == 401


@test
def other_hosts_are_refused(folder):
    with shown(folder) as view:
        for host in ("evil.example", f"evil.example:{view.port}", "127.0.0.1", f"127.0.0.1:{view.port + 1}", "localhost",
                     f"127.0.0.1.evil.example:{view.port}", f"localhost.:{view.port}", "", f"127.0.0.1:{view.port}@evil.example",
                     f"[::]:{view.port}", f"0.0.0.0:{view.port}", f"169.254.169.254:{view.port}"):
            answer = view.raw(view.request("GET /api/session HTTP/1.1", f"Host: {host}"))
            assert status(answer) in (400, 421) and b"images" not in answer, (host, answer)
        own = f"127.0.0.1:{view.port}"
        answer = view.raw(view.request("GET /api/session HTTP/1.1", f"Host: {own}", f"Host: {own}"))
        assert status(answer) in (400, 421), answer
        answer = view.raw(f"GET /api/session HTTP/1.0\r\nCookie: {view.cookie}\r\n\r\n".encode())
        assert status(answer) in (400, 421), answer
        assert status(view.raw(view.request("GET /api/session HTTP/1.1", f"Host: localhost:{view.port}"))) == 200


@test
def other_origins_are_refused(folder):
    with shown(folder) as view:
        for origin in ("https://evil.example", "null", f"https://127.0.0.1:{view.port}", "http://127.0.0.1", "file://",
                       f"http://127.0.0.1:{view.port}.evil.example"):
            code, headers, body = view.get("/api/session", headers={"Origin": origin})
            assert code == 403 and b"images" not in body and "Access-Control-Allow-Origin" not in headers, origin
        for site in ("cross-site", "same-site"):
            assert view.get("/api/session", headers={"Sec-Fetch-Site": site})[0] == 403
        own = {"Origin": f"http://127.0.0.1:{view.port}", "Sec-Fetch-Site": "same-origin"}
        assert view.get("/api/session", headers=own)[0] == 200
        assert view.get("/", headers={"Sec-Fetch-Site": "none"})[0] == 200


@test
def only_get_and_head_are_served(folder):
    with shown(folder) as view:
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"):
            answer = view.raw(view.request(f"{method} /api/session HTTP/1.1"))
            assert status(answer) in (400, 405, 501) and b"images" not in answer, (method, answer)
        answer = view.raw(view.request("POST /api/session HTTP/1.1", "Content-Length: 5") + b"hello")
        assert status(answer) == 405 and b"Allow: GET, HEAD" in answer
        code, headers, body = view.get("/api/session", method="HEAD")
        assert code == 200 and body == b"" and int(headers["Content-Length"]) > 100
        alive(view)


@test
def every_answer_has_the_headers_that_protect(folder):
    with shown(folder) as view:
        for path, cookie in (("/", True), ("/app.js", True), ("/api/session", True), ("/api/plane?image=0&h=1", True),
                             ("/api/plane?image=9", True), ("/nothing", True), ("/", False)):
            _, headers, _ = view.get(path, cookie=cookie)
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, path
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer", path
        assert "<script>" not in view.get("/")[2].decode() and " onclick" not in view.get("/")[2].decode()


@test
def the_page_is_sent_compressed_to_who_takes_that(folder):
    with shown(folder) as view:
        for path in ("/", "/app.js", "/app.css"):
            plain = view.get(path)[2]
            _, headers, packed = view.get(path, headers={"Accept-Encoding": "gzip, br"})
            assert headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain, path
        assert len(packed) < len(plain)


# ---------------------------------------------------------------- what may be asked

@test
def odd_addresses_are_refused(folder):
    with shown(folder) as view:
        secret = pathlib.Path(folder) / "secret.txt"
        secret.write_text("secret")
        targets = ["/%00", "/api/session%00", "/api/plane?image=0%00", "/api/plane?image=%000", "/../secret.txt",
                   "/..%2fsecret.txt",
                   "/%2e%2e/secret.txt", "/..%5csecret.txt", "/app.js/../../secret.txt", "//secret.txt", "/\\secret.txt",
                   "/%c0%ae%c0%ae/secret.txt", "/api/%zz", "/api/plane?image=%", "/%ff", "/api/plane?image=0&p%0d%0aX:1=2",
                   "/a#b", "/zarr/../secret.txt", "/zarr/0/../../secret.txt"]
        for target in targets:
            answer = view.raw(view.request(f"GET {target} HTTP/1.1"))
            assert status(answer) in (400, 404) and b"secret\r" not in answer and not answer.endswith(b"secret"), (target, answer)
        for target in ("/secret.txt", f"/{secret}", "/a.npy", "/api/", "/api/plane/", "/api/plane/0", "/api/../app.js"):
            assert view.get(target)[0] in (400, 404), target
        for line in (b"GET  /api/session HTTP/1.1", b"GET /api/session", b"GET /api/session HTTP/9.9", b"\x00\x01\x02",
                     b"GET http://evil.example/api/session HTTP/1.1", b"GET /api/\x00session HTTP/1.1", b"GET * HTTP/1.1"):
            answer = view.raw(line + f"\r\nHost: 127.0.0.1:{view.port}\r\nConnection: close\r\n\r\n".encode())
            assert b"images" not in answer, (line, answer)
        alive(view)


@test
def requests_that_are_too_large_are_refused(folder):
    with shown(folder) as view:
        for request in (view.request("GET /api/session HTTP/1.1", "X-Large: " + "x" * 200000),
                        view.request("GET /api/session?" + "a" * 200000 + " HTTP/1.1"),
                        view.request("GET /api/session HTTP/1.1", *[f"X-{k}: {k}" for k in range(20000)])):
            answer = view.raw(request)
            assert status(answer) in (0, 400, 413, 414, 431) and b"images" not in answer, answer[:200]
        fields = "&".join(f"a{k}=1" for k in range(200))
        assert view.get(f"/api/plane?{fields}")[0] == 400
        assert view.get("/api/plane?image=99999999999999999999999")[0] == 404
        alive(view)


@test
def smuggled_requests_are_refused(folder):
    with shown(folder) as view:
        inner = f"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:{view.port}\r\nCookie: {view.cookie}\r\nConnection: close\r\n\r\n"
        host = f"Host: 127.0.0.1:{view.port}\r\nCookie: {view.cookie}\r\n"
        cases = [f"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
                 f"Transfer-Encoding: chunked\r\nContent-Length: {len(inner)}\r\n\r\n{inner}",
                 f"Content-Length: {len(inner)}\r\n\r\n{inner}",
                 f"Content-Length: 0\r\nContent-Length: {len(inner)}\r\n\r\n{inner}",
                 f"Transfer-Encoding: xchunked\r\n\r\n{inner}", f"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{inner}",
                 f"Content-Length: -1\r\n\r\n{inner}", f"Content-Length: +5\r\n\r\n{inner}"]
        for case in cases:
            answer = view.raw(f"GET /app.css HTTP/1.1\r\n{host}{case}".encode())
            assert b"HTTP/1.1 200" not in answer and b'"images"' not in answer, (case[:60], answer)
            assert status(answer) in (0, 400, 413), (case[:60], answer)
        alive(view)


@test
def areas_are_bounded(folder):
    numpy.save(pathlib.Path(folder) / "wide.npy", numpy.zeros((5000, 5000), numpy.uint8))
    numpy.save(pathlib.Path(folder) / "big.npy", numpy.zeros((600, 600, 600), numpy.uint8))
    with View("wide.npy", "big.npy", folder=folder) as view:
        assert view.get("/api/plane?image=0")[0] == 400
        assert view.get("/api/plane?image=0&w=9223372036854775807&h=9223372036854775807")[0] == 400
        assert view.get("/api/volume?image=1&level=0")[0] == 400
        assert view.get("/api/volume?image=1&level=1")[0] == 200
        assert view.get("/api/rows?table=0")[0] == 404


# ---------------------------------------------------------------- who may not hinder

@test
def idle_and_slow_connections_do_not_block_others(folder):
    with shown(folder) as view:
        idle = [view.open() for _ in range(400)]
        slow = [view.open() for _ in range(20)]
        for connection in slow:
            connection.sendall(b"GET /api/session HTTP/1.1\r\nHost: ")
        for _ in range(5):
            assert view.raw(view.request("GET /api/session HTTP/1.1")).startswith(b"HTTP/1.1 200")

        def closed(connection):
            connection.setblocking(False)
            try:
                return connection.recv(1) == b""
            except BlockingIOError:
                return False
            except ConnectionResetError:
                return True

        assert sum(closed(connection) for connection in idle) >= 200, "those that waited longest are not closed"
        for connection in idle + slow:
            connection.close()


@test
def who_sends_byte_by_byte_is_not_waited_for(folder):
    with shown(folder) as view:
        connection = view.open()
        text = iter(view.request("GET /api/session HTTP/1.1", "X-Long: " + "x" * 4000))

        def ended():
            try:
                connection.sendall(bytes([next(text)]))
                connection.setblocking(False)
                return connection.recv(1000) in (b"",)
            except BlockingIOError:
                return False
            except (ConnectionResetError, BrokenPipeError):
                return True
            finally:
                connection.setblocking(True)
                time.sleep(0.05)

        wait_for("the end of the connection", ended)
        alive(view)


@test
def those_who_leave_and_those_who_do_not_read_do_no_harm(folder):
    with shown(folder) as view:
        for index in range(40):
            connection = view.open()
            connection.sendall(view.request(f"GET /api/plane?image=0&axis=x&index={index} HTTP/1.1"))
            if index % 2:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
        deaf = [view.open() for _ in range(10)]
        for connection in deaf:
            connection.sendall(view.request("GET /api/plane?image=0&axis=z&index=3 HTTP/1.1"))
        alive(view)
        for connection in deaf:
            connection.close()
        alive(view)


@test
def many_ask_at_once(folder):
    with shown(folder) as view:
        expected = numpy.load(pathlib.Path(folder) / "a.npy")
        wrong = []

        def ask(worker):
            other = View.__new__(View)
            other.__dict__.update(view.__dict__, connection=None)
            for step in range(12):
                index, axis = (worker * 7 + step) % 24, "zyx"[step % 3]
                if not numpy.array_equal(other.plane(axis=axis, index=index), numpy.take(expected, index, step % 3)):
                    wrong.append((axis, index))

        workers = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not wrong, wrong


# ---------------------------------------------------------------- the command itself

@test
def it_ends_well_and_leaves_nothing(folder):
    home = pathlib.Path(folder) / "home"
    home.mkdir()
    numpy.save(pathlib.Path(folder) / "a.npy", numpy.zeros((4, 5, 6), numpy.uint8))
    home.chmod(0o500)
    nowhere = {name: str(home) for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    view = View("a.npy", folder=folder, environment=nowhere)
    waiting = view.open()
    waiting.sendall(b"GET / HT")
    alive(view)
    assert view.stop() == 0
    waiting.close()
    home.chmod(0o700)
    assert sorted(os.listdir(folder)) == ["a.npy", "home"] and not os.listdir(home)


@test
def a_port_that_is_taken_is_said_to_be(folder):
    with shown(folder) as view:
        said = run("view", "a.npy", "--port", view.port, folder=folder, code=2).stderr
        assert f"port {view.port}" in said and "in use" in said, said


@test
def listening_beyond_this_machine_is_warned_of(folder):
    numpy.save(pathlib.Path(folder) / "a.npy", numpy.zeros((4, 5, 6), numpy.uint8))
    view = View("a.npy", "--listen", "0.0.0.0", folder=folder)
    view.host = "127.0.0.1"
    assert view.get("/api/session", cookie=False)[0] == 401
    alive(view)
    answer = view.raw(view.request("GET /api/session HTTP/1.1", f"Host: evil.example:{view.port}"))
    assert status(answer) == 421
    view.connection.close()
    view.process.send_signal(2)
    said = view.process.communicate()[1]
    assert "warning" in said and "ssh" in said, said


@test
def without_the_library_it_says_what_to_install(folder):
    numpy.save(pathlib.Path(folder) / "a.npy", numpy.zeros((4, 5, 6), numpy.uint8))
    said = run("view", "a.npy", folder=folder, code=2, environment={"FOVEA_PLUGINS": folder}).stderr
    assert "apt-get install libmicrohttpd-dev" in said, said


@test
def a_browser_is_opened_only_on_request(folder):
    numpy.save(pathlib.Path(folder) / "a.npy", numpy.zeros((4, 5, 6), numpy.uint8))
    tools = pathlib.Path(folder) / "tools"
    tools.mkdir()
    script = f'#!/bin/sh\necho "$1" > "{folder}/opening" && mv "{folder}/opening" "{folder}/opened"\n'
    (tools / "xdg-open").write_text(script)
    (tools / "xdg-open").chmod(0o755)
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    opened = pathlib.Path(folder) / "opened"
    with View("a.npy", folder=folder, environment=path) as view:
        alive(view)
    assert not opened.exists()
    with View("a.npy", "--open", folder=folder, environment=path) as view:
        wait_for("the browser", opened.exists)
        assert opened.read_text().strip() == view.link


if __name__ == "__main__":
    main()
