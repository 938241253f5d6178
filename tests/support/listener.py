"""A server on the loopback interface that counts what reaches it."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading

_ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Listener:
    """Listens on one port number for TCP and UDP, on IPv4 and, if there is, IPv6."""

    def __init__(self) -> None:
        self.connections = 0
        self.datagrams = 0
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.port = self._listen()
        self._quit, self._quitting = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def arrived(self) -> int:
        """How many connections and datagrams have come.

        The kernel queues what a program sent before the program can end, so this is
        exact for programs that have ended.
        """
        self._drain()
        return self.connections + self.datagrams

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._quitting.close()
        self._thread.join(10)
        for one in (*self._sockets, self._quit):
            one.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            for one in (*self._sockets, self._quit):
                selector.register(one, selectors.EVENT_READ)
            while not any(key.fileobj is self._quit for key, _ in selector.select()):
                self._drain()

    def _drain(self) -> None:
        """Take in everything that waits, and answer it."""
        with self._lock:
            for one in self._sockets:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        self._take(one)

    def _take(self, one: socket.socket) -> None:
        if one.type == socket.SOCK_DGRAM:
            one.recvfrom(1 << 16)
            self.datagrams += 1
            return
        connection, _ = one.accept()
        self.connections += 1
        with connection, contextlib.suppress(OSError):
            connection.settimeout(0.3)
            connection.recv(1 << 16)
            connection.sendall(_ANSWER)

    def _listen(self) -> int:
        """Bind all sockets to one number; another program may hold some of them."""
        for _ in range(50):
            try:
                tcp = socket.create_server(("127.0.0.1", 0))
                self._sockets = [tcp]
                port = int(tcp.getsockname()[1])
                udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self._sockets.append(udp)
                udp.bind(("127.0.0.1", port))
                with contextlib.suppress(OSError):
                    six = socket.create_server(("::1", port), family=socket.AF_INET6)
                    self._sockets.append(six)
            except OSError:
                for one in self._sockets:
                    one.close()
            else:
                for one in self._sockets:
                    one.setblocking(False)
                return port
        raise OSError("no port is free for both TCP and UDP")
