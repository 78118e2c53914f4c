"""The program that moves data: `python -m mpiboot.bootstrap.data.s3 fetch URI DIR KEYS` or `store DIR URI KEYS`.

Success is logged to stderr. The reason of a failure is the only output on stdout: the launcher reads it.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mpiboot.bootstrap.exit_codes import NO_DATA
from mpiboot.bootstrap.files import read_text
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NEEDED = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
MORE = ("AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE")
AT_ONCE = 8


class Item(NamedTuple):
    """One file: its path, its key in the bucket, its size in bytes."""

    path: str
    key: str
    size: int


def main(argv: Sequence[str]) -> int:
    what, source, target, keys = argv
    started = time.monotonic()
    try:
        use_keys(keys)
        items = fetch(source, target) if what == "fetch" else store(source, target)
    except UserError as error:
        sys.stdout.write(str(error))
        return NO_DATA
    except (OSError, ValueError) as error:  # ValueError: boto3 refuses a malformed name or address
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        path = getattr(error, "filename", None)
        sys.stdout.write(f"cannot {what} {source} to {target}: {why}{f': {path}' if path else ''}")
        return NO_DATA
    total = sum(item.size for item in items) / 1e6
    took = time.monotonic() - started
    done = f"{len(items)} {'file' if len(items) == 1 else 'files'} ({total:.1f} MB) from {source} to {target}"
    sys.stderr.write(f"mpiboot: {'fetched' if what == 'fetch' else 'stored'} {done} in {took:.1f} s\n")
    return 0


def use_keys(directory: str) -> None:
    """Set the variables from a mounted Secret, in this process only: the job's command does not need them."""
    if not directory:
        return
    for name in (*NEEDED, *MORE):
        try:
            value = read_text(f"{directory}/{name}", strict=True).strip()
            if not value.isprintable():
                raise ValueError("it holds control characters")
            os.environ[name] = value
        except FileNotFoundError:
            if name in NEEDED:
                raise UserError(f"the S3 Secret (mounted at {directory}) has no key {name}; add it") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or ("it is not text" if isinstance(error, UnicodeError) else error)
            raise UserError(f"cannot use the key {name} of the S3 Secret (mounted at {directory}): {why}") from error


def fetch(uri: str, directory: str) -> list[Item]:
    bucket, prefix = split(uri)
    client = connect()
    os.makedirs(directory, exist_ok=True)
    with errors_as(f"cannot fetch {uri}"):
        items = [*listed(client, bucket, prefix, directory)]
        if not items:
            raise UserError(f"cannot fetch {uri}: the bucket has no object with that name")
        for folder in {os.path.dirname(item.path) for item in items}:
            os.makedirs(folder, exist_ok=True)
        at_once(lambda item: client.download_file(bucket, item.key, item.path), items)
    return items


def listed(client: Any, bucket: str, prefix: str, directory: str) -> Iterator[Item]:  # noqa: ANN401 (untyped library)
    """The files at or below a prefix. `data` does not match `data-old/x`. A key that ends with / is a folder."""
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            key: str = entry["Key"]
            if key.endswith("/"):
                continue
            below = not prefix or key.startswith(f"{prefix}/")
            if below or key == prefix:
                path = key[len(prefix) :].lstrip("/") if below else key.rpartition("/")[2]
                if ".." in path.split("/"):
                    raise UserError(f"cannot fetch s3://{bucket}/{key}: its name leads out of {directory}")
                yield Item(f"{directory}/{path}", key, entry["Size"])


def store(source: str, uri: str) -> list[Item]:
    bucket, prefix = split(uri)
    if not os.path.exists(source):
        sys.stderr.write(f"mpiboot: nothing to store: there is no {source} in this pod\n")
        return []
    client, items = connect(), [*files(source, prefix)]
    with errors_as(f"cannot store {source} to {uri}"):
        at_once(lambda item: client.upload_file(item.path, bucket, item.key), items)
    return items


def files(source: str, prefix: str) -> Iterator[Item]:
    """The files at or below a path, each with its key. Links to files count as files."""
    base = f"{prefix}/" if prefix else ""
    if os.path.isfile(source):
        yield Item(source, f"{base}{os.path.basename(source)}", os.path.getsize(source))
    for folder, _, names in os.walk(source):
        for path in (f"{folder}/{name}" for name in sorted(names)):
            if os.path.isfile(path):
                yield Item(path, f"{base}{os.path.relpath(path, source)}", os.path.getsize(path))


def split(uri: str) -> tuple[str, str]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    if not uri.startswith("s3://") or not bucket:
        raise UserError(f"{uri!r} is not s3://BUCKET/PREFIX")
    return bucket, prefix.strip("/")


def connect() -> Any:  # noqa: ANN401 (untyped library)
    """A client of S3, or of the server in AWS_ENDPOINT_URL."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        raise UserError(
            "S3 data needs boto3, which is not in this image; add it in a Dockerfile FROM it: "
            "USER 0, RUN apt-get update && apt-get install -y python3-boto3, USER 1000:0"
        ) from None
    # Few other servers have a host name for each bucket.
    style = {"addressing_style": "path"} if os.environ.get("AWS_ENDPOINT_URL") else {}
    retries = {"mode": "standard", "max_attempts": 5}
    with errors_as("cannot connect to S3"):
        return boto3.client("s3", config=Config(s3=style, retries=retries, max_pool_connections=2 * AT_ONCE))


def at_once(move: Callable[[Item], None], items: Sequence[Item]) -> None:
    """Move several files at a time. The first failure is raised, and no further file starts after it."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for done in [pool.submit(move, item) for item in items]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def errors_as(what: str) -> Iterator[None]:
    """Turn the library's errors into one line that begins with `what`."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise UserError(f"{what}: {' '.join(str(error).split())}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
