"""A watch whose server is gone without a word, as after a node's death or a failover of a load balancer.

The test needs a network of its own, whose only link it takes down: so it runs in a network namespace.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable

WATCH = textwrap.dedent("""
    import asyncio, subprocess
    from mpiboot.kube import api, kinds
    from mpiboot.kube.api_error import UnreachableError
    from mpiboot.kube.connection import Connection

    api.LOST_AFTER = 6

    async def serve(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        writer.write(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')
        event = b'{"type": "BOOKMARK", "object": {}}\\n'
        writer.write(b"%x\\r\\n%b\\r\\n" % (len(event), event))
        await writer.drain()

    async def headers():
        return {}

    async def main():
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with api.Api(Connection(f"http://127.0.0.1:{port}", None, headers, "default")) as client:
            changes = client.watch(kinds.POD, "", "1")
            await anext(changes)
            subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
            try:
                await asyncio.wait_for(anext(changes), 60)
            except UnreachableError as error:
                print("lost:", error)

    asyncio.run(main())
""")


def test_the_end_of_a_server_that_says_nothing_is_noticed(program: Callable[[str], str]) -> None:
    program("ip")
    alone = [program("unshare"), "--net", "--map-root-user"]
    if subprocess.run([*alone, "true"], capture_output=True, timeout=60).returncode:
        missing("a network namespace of its own", "root, or a kernel that gives users namespaces")
    done = subprocess.run([*alone, sys.executable, "-c", WATCH], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("lost: watch of /api/v1/pods: "), done.stderr
