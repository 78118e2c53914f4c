"""A way to a server that a test can cut: what happens when a network or an API server goes away."""

from __future__ import annotations

import contextlib
import select
import socket
import threading


class Cable:
    """A port that leads to a server, while it is plugged in."""

    def __init__(self, server: str) -> None:
        host, _, port = server.removeprefix("https://").rpartition(":")
        self._server = (host, int(port))
        self._near = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._near.getsockname()[1]}"
        self.plugged = True
        self.refused = 0  # connections while it was not plugged in
        self._closed = False
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._closed = True
        for thread in self._threads:
            thread.join()

    def _leads(self) -> bool:
        return self.plugged and not self._closed

    def _accept(self) -> None:
        with self._near:
            while not self._closed:
                if select.select([self._near], [], [], 0.02)[0]:
                    thread = threading.Thread(target=self._carry, args=(self._near.accept()[0],))
                    thread.start()
                    self._threads.append(thread)

    def _carry(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            if not self._leads():
                self.refused += 1
                return
            with socket.create_connection(self._server) as far:
                while self._leads():
                    for source in select.select([near, far], [], [], 0.02)[0]:
                        data = source.recv(65536)
                        (far if source is near else near).sendall(data)
                        if not data:
                            return
