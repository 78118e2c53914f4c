"""A namespace of a cluster for engines and commands, which are not asynchronous."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mpiboot.engines.jobs import NoAnswerError
from mpiboot.engines.kubernetes.namespace_jobs import NamespaceJobs
from mpiboot.job.errors import UserError
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.blocking import Client
from mpiboot.kube.connection import connect

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

T = TypeVar("T")


class Cluster:
    """One namespace; without a name the kubeconfig's. Its connections end with the process, or with `close`.

    `context`: one of the kubeconfig, instead of its current one.
    """

    def __init__(self, namespace: str | None, context: str | None = None) -> None:
        self._client = Client(partial(connect, context=context))
        self.jobs = NamespaceJobs(self._client.api, namespace or self._client.api.connection.namespace)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin some work. Its future may raise ApiError and UnreachableError."""
        return self._client.start(work)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of some work; what the cluster refuses is an error for the user."""
        try:
            return self._client.call(work)
        except (ApiError, UnreachableError) as error:
            raise refusal(error) from None

    def close(self) -> None:
        self._client.close()


def refusal(error: ApiError | UnreachableError) -> UserError:
    """The error for the user."""
    if isinstance(error, UnreachableError) or error.passing:
        return NoAnswerError(f"the cluster does not answer: {error}")
    if error.not_found:
        return UserError(f"the cluster has no MPIJobs ({error}); install the operator first: docs/operator.md")
    return UserError(f"the cluster refuses: {error}")
