"""A container through testinfra: its files, users and programs, and commands in it.

The reader of a command's output stops at a limit, since the image under check decides how much a command prints.
"""

from __future__ import annotations

import selectors
import subprocess
from typing import TYPE_CHECKING, Any

import testinfra.host
from testinfra.backend.docker import DockerBackend

from mpiboot.containers.client import docker_cli

if TYPE_CHECKING:
    from testinfra.backend.base import CommandResult

# Commands of the check print at most some 10 kB in an honest image (`sshd -T`).
LONGEST_OUTPUT = 1_000_000
CUT_OFF = b"\nmpiboot: it printed more than 1 MB and was not read further\n"


class Backend(DockerBackend):  # type: ignore[misc] # testinfra has no types
    """testinfra's connection to a container, without a shell on this machine and with a limit to what it reads."""

    def run(self, command: str, *args: str, **_: Any) -> CommandResult:  # noqa: ANN401 (testinfra's signature)
        inside = self.get_command(command, *args)
        user = ["--user", self.user] if self.user else []
        out, error, code = _bounded([docker_cli(), "exec", *user, self.name, "/bin/sh", "-c", inside])
        return self.result(code, inside.encode(), out, error)

    def decode(self, data: bytes) -> str:
        """testinfra would ask the container's Python for its encoding, and raise for bytes that do not fit."""
        return data.decode(errors="replace")


class MissingToolError(Exception):
    """The image lacks a program that a module of testinfra calls, or that program does not work."""


class Host(testinfra.host.Host):  # type: ignore[misc] # testinfra has no types
    """testinfra's modules for one container and one of its users. Threads may not share it."""

    def run_expect(self, expected: list[int], command: str, *args: str, **options: Any) -> CommandResult:  # noqa: ANN401
        """Raise MissingToolError where testinfra fails an assertion: for example in an image without `uname`."""
        done = self.run(command, *args, **options)
        if done.rc not in expected:
            output = f"{done.stderr}\n{done.stdout}".strip().partition("\n")[0]
            raise MissingToolError(f"`{self.backend.get_command(command, *args)}` failed in the image: {output}")
        return done

    def check_output(self, command: str, *args: str, **options: Any) -> str:  # noqa: ANN401 (testinfra's signature)
        output: str = self.run_expect([0], command, *args, **options).stdout
        return output.rstrip("\r\n")


def host(container: str, user: str | None = None, like: Host | None = None) -> Host:
    """The container of this name, as one of its users; with `like`, testinfra need not detect the system again."""
    backend = Backend(f"{user}@{container}" if user else container)
    found = Host(backend)
    backend.set_host(found)
    if like:
        found.system_info = like.system_info
    return found


def _bounded(argv: list[str]) -> tuple[bytes, bytes, int]:
    """Both outputs of a program and its exit code. A program that prints too much ends with code 1."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    out, error = bytearray(), bytearray()
    with process, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, out)
        selector.register(process.stderr, selectors.EVENT_READ, error)
        while selector.get_map():
            for key, _ in selector.select():
                chunk = key.fileobj.read1(65536)  # type: ignore[union-attr]
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
            if max(len(out), len(error)) > LONGEST_OUTPUT:
                process.kill()
                return bytes(out[:LONGEST_OUTPUT]), bytes(error[:LONGEST_OUTPUT]) + CUT_OFF, 1
    return bytes(out), bytes(error), process.returncode
