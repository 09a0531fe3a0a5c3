"""An imitation of HDFS on loopback, by its WebHDFS: a NameNode that answers questions and sends those who want bytes elsewhere,
and a DataNode at another port that gives and takes bytes.

    with serve(folder) as server:
        run("info", "hdfs://name/a.tif", environment={"FOVEA_WEBHDFS": server.url, "HADOOP_USER_NAME": "ada"})

Files lie in the folder. Only the user ada may write. faults, by path: "busy" (503 for two requests), "denied" (403), "short"
(half of the bytes), "nowhere" (400 to the question where it lies). hosts, by path: the machines that have its blocks. server.log
holds (operation, path) of every request; those of the DataNode begin with "data ".
"""
import contextlib
import http.server
import json
import os
import pathlib
import threading
import urllib.parse

PREFIX = "/webhdfs/v1"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, found=None, body=None, headers=()):
        body = json.dumps(found).encode() if body is None else body
        self.send_response(code)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def missing(self, path):
        self.answer(404, {"RemoteException": {"exception": "FileNotFoundException", "message": f"File does not exist: {path}"}})

    def serve(self):
        """Of either of them."""
        address = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(address.path.removeprefix(PREFIX))
        query = dict(urllib.parse.parse_qsl(address.query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        log, fault = self.server.shared.log, self.server.shared.faults.get(path)
        log.append(("data " * self.server.data + query["op"], path))
        if fault == "busy" and sum(entry[1] == path for entry in log) < 3:
            self.answer(503, {})
        elif fault == "denied" or (self.command != "GET" and query.get("user.name") != "ada"):
            self.answer(403, {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied"}})
        else:
            file = pathlib.Path(str(self.server.shared.folder) + path)
            getattr(self, ("data_" if self.server.data else "name_") + query["op"].lower())(file, path, query, body, fault)

    do_GET = do_PUT = do_DELETE = serve

    # ---- the NameNode

    def status(self, file, suffix=""):
        facts = file.stat()
        return {"pathSuffix": suffix, "type": "DIRECTORY" if file.is_dir() else "FILE", "fileId": facts.st_ino,
                "length": 0 if file.is_dir() else facts.st_size, "modificationTime": facts.st_mtime_ns // 1000000}

    def name_getfilestatus(self, file, path, *_):
        self.answer(200, {"FileStatus": self.status(file)}) if file.exists() else self.missing(path)

    def name_liststatus(self, file, path, *_):
        if not file.exists():
            self.missing(path)
            return
        inner = [(f, f.name) for f in sorted(file.iterdir())] if file.is_dir() else [(file, "")]
        self.answer(200, {"FileStatuses": {"FileStatus": [self.status(*one) for one in inner]}})

    def name_getfileblocklocations(self, file, path, query, _, fault):
        if fault == "nowhere":
            self.answer(400, {"RemoteException": {"exception": "IllegalArgumentException", "message": "Invalid value for op"}})
            return
        hosts = self.server.shared.hosts.get(path, ["somewhere.net"])
        self.answer(200, {"BlockLocations": {"BlockLocation": [{"offset": 0, "length": file.stat().st_size, "hosts": hosts}]}})

    def elsewhere(self, query):
        return f"{self.server.shared.data_url}{self.path}&namenoderpcaddress={query.get('user.name', '')}"

    def name_open(self, file, path, query, *_):
        if not file.is_file():
            self.missing(path)
        else:
            self.answer(307, body=b"", headers=[("Location", self.elsewhere(query))])

    def name_create(self, file, path, query, body, _):
        assert not body, "bytes are for the DataNode"
        self.answer(200, {"Location": self.elsewhere(query)})

    def name_rename(self, file, path, query, *_):
        to = pathlib.Path(str(self.server.shared.folder) + query["destination"])
        if to.is_dir() or query["renameoptions"] != "OVERWRITE":
            self.answer(403, {"RemoteException": {"exception": "IOException", "message": "it is a directory"}})
            return
        os.replace(file, to)
        self.answer(200, body=b"")

    def name_delete(self, file, *_):
        there = file.exists()
        file.unlink(missing_ok=True)
        self.answer(200, {"boolean": there})

    # ---- the DataNode

    def data_open(self, file, path, query, _, fault):
        data = file.read_bytes()[int(query.get("offset", 0)):][:int(query.get("length", 1 << 60))]
        self.answer(200, body=data[:len(data) // 2] if fault == "short" else data)

    def data_create(self, file, path, query, body, _):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
        self.answer(201, body=b"", headers=[("Location", f"hdfs://name{path}")])


@contextlib.contextmanager
def serve(folder, faults=None, hosts=None):
    """While the block runs."""
    name, data = (http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2))
    name.data, data.data, name.shared, data.shared = False, True, name, name
    name.folder, name.faults, name.hosts, name.log = folder, faults or {}, hosts or {}, []
    name.url, name.data_url = (f"http://127.0.0.1:{server.server_port}" for server in (name, data))
    threads = [threading.Thread(target=server.serve_forever, daemon=True) for server in (name, data)]
    for thread in threads:
        thread.start()
    try:
        yield name
    finally:
        for server in (name, data):
            server.shutdown()
            server.server_close()
