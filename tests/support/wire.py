"""A wire between a client and a server of this machine that can be cut, and mended."""
import selectors
import socket
import threading


class Wire:
    """with Wire(port) as wire: what connects to wire.port talks to that port. cut(): nothing comes through, and nobody is told;
    snap(): all connections break; mend(): it goes on."""

    def __init__(self, port):
        self.to, self.whole, self.over = port, True, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.others, self.lock = {}, threading.Lock()  # each end of a connection knows the other
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def cut(self):
        self.whole = False

    def mend(self):
        self.whole = True

    def snap(self):
        with self.lock:
            for end in list(self.others):
                self.drop(end)

    def drop(self, end):
        if end not in self.others:
            return
        for one in (end, self.others.pop(end)):
            self.others.pop(one, None)
            self.selector.unregister(one)
            one.close()

    def connect(self):
        here, _ = self.listener.accept()
        try:
            there = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            here.close()
            return
        self.others.update({here: there, there: here})
        for end in (here, there):
            self.selector.register(end, selectors.EVENT_READ)

    def carry(self, end):
        other = self.others.get(end)
        if other is None:
            return
        try:
            data = end.recv(1 << 16)
            if data:
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            self.drop(end)

    def serve(self):
        while not self.over:
            ready = self.selector.select(0.05) if self.whole else []
            if not ready:
                threading.Event().wait(0.01)
            with self.lock:
                for key, _ in ready:
                    if not self.whole or self.over:
                        break
                    if key.fileobj is self.listener:
                        self.connect()
                    else:
                        self.carry(key.fileobj)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.snap()
        self.listener.close()
