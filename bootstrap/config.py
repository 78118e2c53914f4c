"""Options and environment become one frozen value, or one error that names all that is bad."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.data import Data
from mpiboot.job import elastic
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.bootstrap.options import Parsed
    from mpiboot.job.elastic import Elastic


class ConfigError(UserError):
    """A setting is wrong."""


class CheckIn(NamedTuple):
    """Where workers report and the launcher listens."""

    urls: tuple[str, ...]
    job: str
    token: str


class BootConfig(NamedTuple):
    """What a launcher was told."""

    hostfile: str
    hostfile_is_default: bool
    addresses: str
    ssh_dir: str
    init_timeout: float
    min_workers: int
    probe: str
    verify_hosts: bool
    user: str
    forward: tuple[str, ...]
    strict_placement: bool
    checkin: CheckIn | None
    implementation: str
    events: str
    data: Data
    end_workers: bool
    command: tuple[str, ...]

    @property
    def elastic(self) -> bool:
        """Whether workers may come and go while the command runs."""
        return self.size is not None

    @property
    def size(self) -> Elastic | None:
        """How small and how large an elastic job may be; None: all of its workers are needed."""
        return elastic.of_words(self.command, self.min_workers)


class WorkerConfig(NamedTuple):
    """What a worker was told. `number` is -1 where nobody counted the workers."""

    ssh_dir: str
    port: int
    listen: str
    checkin: CheckIn | None
    number: int
    uid: str
    address: str
    data: Data
    launcher: str
    init_timeout: float


def launcher(parsed: Parsed, environ: Mapping[str, str]) -> BootConfig:
    """The launcher's configuration."""
    values, problems = parsed.values, list[str]()
    config = BootConfig(
        hostfile=values["hostfile"],
        hostfile_is_default=not environ.get("MPIBOOT_HOSTFILE") and values["hostfile"] == "/etc/mpi/hostfile",
        addresses=values["addresses"],
        ssh_dir=values["ssh_dir"],
        init_timeout=_number(values["init_timeout"], "--init-timeout", "seconds", problems),
        min_workers=int(_number(values["min_workers"], "--min-workers", "workers", problems, whole=True)),
        probe=values["probe"],
        verify_hosts=values["host_keys"] == "verify",
        user=values["user"],
        forward=tuple(values.get("forward_env", "").replace(",", " ").split()),
        strict_placement=_switch(values.get("strict_placement", "")),
        checkin=_checkin(environ, problems),
        implementation=environ.get("MPIBOOT_IMPLEMENTATION", ""),
        events=environ.get("MPIBOOT_EVENTS", ""),
        data=_data(values, problems),
        end_workers=_switch(values.get("end_workers", "")),
        command=parsed.command,
    )
    _refuse(problems)
    return config


def worker(parsed: Parsed, environ: Mapping[str, str]) -> WorkerConfig:
    """The worker's configuration."""
    values, problems = parsed.values, list[str]()
    port = int(_number(values["port"], "--port", "a port number", problems, whole=True))
    if not problems and not 1 <= port <= 65535:
        problems.append(f"--port must be from 1 to 65535, is {port}")
    checkin = _checkin(environ, problems)
    index = int(_number(environ.get("MPIBOOT_INDEX") or "-1", "MPIBOOT_INDEX", "a number", problems, whole=True))
    if checkin and index < 0 and not problems:
        problems.append("MPIBOOT_CHECKIN is set, but MPIBOOT_INDEX, this worker's number, is not")
    config = WorkerConfig(
        ssh_dir=values["ssh_dir"],
        port=port,
        listen=values["listen"],
        checkin=checkin,
        number=index,
        uid=environ.get("MPIBOOT_POD_UID", ""),
        address=environ.get("MPIBOOT_POD_IP", ""),
        data=_data(values, problems),
        launcher=values["launcher"],
        init_timeout=_number(values["init_timeout"], "--init-timeout", "seconds", problems),
    )
    _refuse(problems)
    return config


def _checkin(environ: Mapping[str, str], problems: list[str]) -> CheckIn | None:
    urls = tuple(environ.get("MPIBOOT_CHECKIN", "").split())
    if not urls:
        return None
    needed = ("MPIBOOT_JOB", "MPIBOOT_TOKEN")
    problems += [f"MPIBOOT_CHECKIN is set, but {name} is not" for name in needed if not environ.get(name)]
    return CheckIn(urls, environ.get("MPIBOOT_JOB", ""), environ.get("MPIBOOT_TOKEN", ""))


def _data(values: Mapping[str, str], problems: list[str]) -> Data:
    pairs = [(values.get(f"{way}_from", ""), values.get(f"{way}_to", "")) for way in ("download", "upload")]
    for way, pair in zip(("download", "upload"), pairs, strict=True):
        if any(pair) and not all(pair):
            problems.append(f"--{way}-from and --{way}-to go together: give both or neither")
    download, upload = (pair if all(pair) else None for pair in pairs)
    return Data(download, upload, values.get("data_keys", ""))


def _number(text: str, what: str, unit: str, problems: list[str], *, whole: bool = False) -> float:
    try:
        value = float(int(text)) if whole else float(text)
    except ValueError:
        problems.append(f"{what} must be {'a whole number' if whole else 'a number'} ({unit}), is {text!r}")
        return 0.0
    if not (-1 if what == "MPIBOOT_INDEX" else 0) <= value < float("inf"):
        problems.append(f"{what} must be 0 or more ({unit}), is {text}")
        return 0.0
    return value


def _switch(text: str) -> bool:
    return text.lower() not in ("", "0", "no", "off", "false")


def _refuse(problems: list[str]) -> None:
    if problems:
        raise ConfigError("; ".join(problems))
