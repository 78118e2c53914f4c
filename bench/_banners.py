"""The least work that shows that some sshds answer: connect to all, read each banner, print how long that took.

A separate program: `python _banners.py PORT ADDRESS...`.
"""

import selectors
import socket
import sys
import time


def main() -> None:
    port, addresses = int(sys.argv[1]), sys.argv[2:]
    begun = time.perf_counter()
    selector = selectors.DefaultSelector()
    for address in addresses:
        sock = socket.socket()
        sock.setblocking(False)  # noqa: FBT003
        sock.connect_ex((address, port))
        selector.register(sock, selectors.EVENT_READ)
    left = len(addresses)
    while left:
        for key, _ in selector.select():
            if not key.fileobj.recv(256).startswith(b"SSH-2.0"):  # type: ignore[union-attr]
                raise SystemExit("this is no sshd")
            selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
            left -= 1
    print(time.perf_counter() - begun)


if __name__ == "__main__":
    main()
