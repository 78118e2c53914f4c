"""Options and environment become one frozen value, or one error that names everything that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job.errors import UserError
from mpiboot.job.values import exit_codes, natural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.bootstrap.options import Parsed
    from mpiboot.job.elastic import Elastic


_SHOWN = 60  # characters of a setting that is wrong


class Data(NamedTuple):
    """What to fetch and what to store: FROM and TO, or None. `keys` is a directory of files, or empty."""

    download: tuple[str, str] | None
    upload: tuple[str, str] | None
    keys: str


class CheckIn(NamedTuple):
    """Where workers report and the launcher listens."""

    urls: tuple[str, ...]
    job: str
    token: str


class BootConfig(NamedTuple):
    """The settings of a launcher."""

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
    restarts: int
    final_codes: frozenset[int]
    lost_worker_timeout: float
    strict_placement: bool
    checkin: CheckIn | None
    events: str
    data: Data
    end_workers: bool
    receive: str
    receive_timeout: float
    give: str
    command: tuple[str, ...]

    @property
    def elastic(self) -> bool:
        """Whether workers may come and go while the command runs."""
        return self.size is not None

    @property
    def size(self) -> Elastic | None:
        """How small and how large an elastic job may be; None: all of its workers are needed."""
        from mpiboot.job import elastic  # a worker does not need it

        return elastic.of_words(self.command, self.min_workers)


class WorkerConfig(NamedTuple):
    """The settings of a worker. `number` is -1 where MPIBOOT_INDEX is not set."""

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
        init_timeout=_seconds(values["init_timeout"], "--init-timeout", problems),
        min_workers=_whole(values["min_workers"], "--min-workers", "workers", problems),
        probe=values["probe"],
        verify_hosts=values["host_keys"] == "verify",
        user=_user(values["user"], problems),
        forward=tuple(values.get("forward_env", "").replace(",", " ").split()),
        restarts=_whole(values.get("restarts", "0"), "--restarts", "restarts", problems),
        final_codes=_codes(values.get("final_codes", ""), problems),
        lost_worker_timeout=_seconds(values.get("lost_worker_timeout", "0"), "--lost-worker-timeout", problems),
        strict_placement=_switch(values.get("strict_placement", "")),
        checkin=_checkin(environ, problems),
        events=environ.get("MPIBOOT_EVENTS", ""),
        data=_data(values, problems),
        end_workers=_switch(values.get("end_workers", "")),
        receive=values.get("receive", ""),
        give=values.get("give", ""),
        receive_timeout=_seconds(values.get("receive_timeout", "0"), "--receive-timeout", problems),
        command=parsed.command,
    )
    _refuse(problems)
    return config


def worker(parsed: Parsed, environ: Mapping[str, str]) -> WorkerConfig:
    """The worker's configuration."""
    values, problems = parsed.values, list[str]()
    port = _whole(values["port"], "--port", "a port number", problems)
    if not problems and not 1 <= port <= 65535:
        problems.append(f"--port must be from 1 to 65535, is {port}")
    checkin = _checkin(environ, problems)
    index = _index(environ, problems)
    if checkin and index < 0 and not problems:
        problems.append("MPIBOOT_CHECKIN is set, but MPIBOOT_INDEX, this worker's number, is not")
    config = WorkerConfig(
        ssh_dir=values["ssh_dir"],
        port=port,
        listen=_listen(values["listen"], problems),
        checkin=checkin,
        number=index,
        uid=environ.get("MPIBOOT_POD_UID", ""),
        address=environ.get("MPIBOOT_POD_IP", ""),
        data=_data(values, problems),
        launcher=values["launcher"],
        init_timeout=_seconds(values["init_timeout"], "--init-timeout", problems),
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


def _seconds(text: str, what: str, problems: list[str]) -> float:
    try:
        value = float(text) if text.isascii() else -1.0
    except ValueError:
        problems.append(f"{what} must be a number (seconds), is {_shown(text)}")
        return 0.0
    if not 0 <= value < float("inf"):
        problems.append(f"{what} must be 0 or more (seconds), is {_shown(text)}")
        return 0.0
    return value


def _whole(text: str, what: str, unit: str, problems: list[str]) -> int:
    value = natural(text.removeprefix("-"))
    if value is None:
        problems.append(f"{what} must be a whole number ({unit}), is {_shown(text)}")
    elif value and text.startswith("-"):
        problems.append(f"{what} must be 0 or more ({unit}), is {text}")
    else:
        return value
    return 0


def _codes(text: str, problems: list[str]) -> frozenset[int]:
    codes = exit_codes(text)
    if codes is None:
        problems.append(f"--final-codes must be exit codes from 1 to 255, like 2,64-78, is {_shown(text)}")
    return codes or frozenset()


def _index(environ: Mapping[str, str], problems: list[str]) -> int:
    text = environ.get("MPIBOOT_INDEX", "")
    return _whole(text, "MPIBOOT_INDEX", "this worker's number", problems) if text else -1


def _user(text: str, problems: list[str]) -> str:
    if text:
        from mpiboot.bootstrap.hosts import is_user

        if not is_user(text):
            problems.append(f"--user must be a user's name, is {_shown(text)}")
    return text


def _listen(text: str, problems: list[str]) -> str:
    numbers = [natural(part) for part in text.split(".")]
    ipv4 = len(numbers) == 4 and all(number is not None and number < 256 for number in numbers)
    if text and ":" not in text and not ipv4:  # sshd checks IPv6 addresses
        problems.append(f"--listen must be an IP address of this host, is {_shown(text)}")
    return text


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def _switch(text: str) -> bool:
    return text.lower() not in ("", "0", "no", "off", "false")


def _refuse(problems: list[str]) -> None:
    if problems:
        raise UserError("; ".join(problems))
