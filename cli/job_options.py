"""The options that all commands on jobs share: where the job is, and the form of the output."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

ENGINES = ("docker", "local", "kubernetes")
Command = TypeVar("Command", bound="Callable[..., int]")


def where(default: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Options that become one argument `where`. `default` says where the command looks without them."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @click.option("--engine", type=click.Choice(ENGINES), help=f"Only jobs of this engine.  [default: {default}]")
        @click.option("-n", "--namespace", metavar="NAME",
                      help="Namespace of a cluster; implies --engine kubernetes.  [default: the context's]")
        @click.option("--context", metavar="NAME",
                      help="Context of the kubeconfig; implies --engine kubernetes.  [default: the current one]")
        @functools.wraps(command)
        def with_where(*args: object, engine: str | None, namespace: str | None, context: str | None,
                       **options: object) -> int:
            from mpiboot.engines.choose import Where

            return command(*args, where=Where(engine, namespace, context), **options)

        return with_where

    return decorate  # fmt: skip


ANYWHERE = where("this machine's, else the kubeconfig's cluster")
HERE = where("docker and local")
JSON = click.option("-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
                    help="Form of the output; docs/how-to/jobs.md has the keys of json.")  # fmt: skip
