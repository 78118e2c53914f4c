"""The options of `mpiboot launch`, `wait`, `hosts` and `worker`: one table, from which parser, help and docs derive."""

# A parser of our own, because click takes 50 ms to import: that is time in which a job could have started.
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job.errors import UserError
from mpiboot.job.words import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LAUNCHER = ("launch", "wait", "hosts")


class Option(NamedTuple):
    """One option. Without `metavar` it is a switch. The environment variable counts where the option is not given."""

    flag: str
    variable: str
    metavar: str
    default: str
    help: str
    commands: tuple[str, ...]
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.flag.lstrip("-").replace("-", "_")


class Command(NamedTuple):
    """One command: what it does, how it is called, and what its exit codes mean."""

    name: str
    summary: str
    usage: str
    exit_codes: tuple[tuple[str, str], ...]


OPTIONS = (
    Option("--hostfile", "MPIBOOT_HOSTFILE", "FILE", "/etc/mpi/hostfile",
           "The workers' names and slots, in the dialect of any MPI.", LAUNCHER),
    Option("--addresses", "MPIBOOT_ADDRESSES", "FILE", "",
           "Lines 'NAME ADDRESS [PORT [USER]]'; read again whenever it changes. Without it names go to DNS.", LAUNCHER),
    Option("--ssh-dir", "MPIBOOT_SSH_DIR", "DIR", "",
           "Where the job's SSH keys are mounted. Empty: the first of ~/.ssh, /home/mpiuser/.ssh and /root/.ssh that "
           "holds keys.", (*LAUNCHER, "worker")),
    Option("--init-timeout", "MPIBOOT_INIT_TIMEOUT", "SECONDS", "300",
           "How long workers may take until their SSH answers; then exit 124. Time in which a worker is known to wait "
           "for a machine or an image does not count.", LAUNCHER),
    Option("--min-workers", "MPIBOOT_MIN_WORKERS", "N", "0",
           "Start as soon as N workers are ready, and keep the list of hosts current after that (elastic jobs). "
           "0: as many as --min-np of the command needs; all of them if the job is not elastic.", LAUNCHER),
    Option("--probe", "MPIBOOT_PROBE", "HOW", "banner",
           "How a worker that did not check in is tried. banner: its SSH greeting; all: log in to every worker; "
           "none: an address is enough.", LAUNCHER, ("banner", "all", "none")),
    Option("--host-keys", "MPIBOOT_HOST_KEYS", "HOW", "verify",
           "verify: a worker must show the job's host key. off: any key will do.", LAUNCHER, ("verify", "off")),
    Option("--user", "MPIBOOT_SSH_USER", "NAME", "",
           "Whom to log in as. Empty: as the addresses, the check-in or the image's SSH configuration say.", LAUNCHER),
    Option("--forward-env", "MPIBOOT_FORWARD_ENV", "NAMES", "",
           "Environment variables that go to every rank, separated by commas or blanks; 'NCCL_*' stands for all that "
           "begin so.", ("launch",)),
    Option("--strict-placement", "MPIBOOT_STRICT_PLACEMENT", "", "",
           "End the job if all its ranks run on the launcher though other hosts have slots. Otherwise only warn.",
           ("launch",)),
    Option("--end-workers", "MPIBOOT_END_WORKERS", "", "",
           "When the command has ended, tell the workers to end, too. For workers that nobody else looks after.",
           ("launch",)),
    Option("--launcher", "MPIBOOT_LAUNCHER", "HOST", "",
           "End when this host, the launcher, is gone: when DNS has not known it for 30 s. For workers that nobody "
           "else looks after.", ("worker",)),
    Option("--init-timeout", "MPIBOOT_INIT_TIMEOUT", "SECONDS", "300",
           "How long the launcher that --launcher names may take to come; then exit 124.", ("worker",)),
    Option("--download-from", "MPIBOOT_DOWNLOAD_FROM", "URI", "",
           "s3://BUCKET/PREFIX to fetch before anything else; goes with --download-to.", ("launch", "worker")),
    Option("--download-to", "MPIBOOT_DOWNLOAD_TO", "DIR", "", "Where to put it.", ("launch", "worker")),
    Option("--upload-from", "MPIBOOT_UPLOAD_FROM", "DIR", "",
           "What to store when the command has ended, or a worker's launcher; goes with --upload-to.",
           ("launch", "worker")),
    Option("--upload-to", "MPIBOOT_UPLOAD_TO", "URI", "", "s3://BUCKET/PREFIX for it.", ("launch", "worker")),
    Option("--data-keys", "MPIBOOT_DATA_KEYS", "DIR", "",
           "A mounted Secret: files AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL and the like. Empty: "
           "what boto3 finds by itself.", ("launch", "worker")),
    Option("--port", "MPIBOOT_PORT", "PORT", "2222",
           "The port on which SSH listens.", ("worker",)),
    Option("--listen", "MPIBOOT_LISTEN", "ADDRESS", "",
           "The address on which SSH listens. Empty: all.", ("worker",)),
)  # fmt: skip

COMMANDS = (
    Command("launch", "Wait for the workers, then run a command and end as it ends.",
            "mpiboot launch [OPTIONS] [--] COMMAND [ARGUMENT...]", (
                ("the command's own", "it ran; 128+N if signal N ended it"),
                ("2", "the options, the hostfile or the keys are wrong"),
                ("74", "data could not be fetched or stored"),
                ("124", "the workers were not ready in time"),
                ("125", "mpiboot ended the job: a worker was lost, or --strict-placement"),
                ("126", "the command cannot be executed"),
                ("127", "the command was not found"))),
    Command("wait", "Wait for the workers and do nothing else.", "mpiboot wait [OPTIONS]", (
                ("0", "they are ready"),
                ("2", "the options, the hostfile or the keys are wrong"),
                ("124", "the workers were not ready in time"),
                ("128+N", "signal N ended the wait"))),
    Command("hosts", "Print the workers that are ready now, as HOST:SLOTS.", "mpiboot hosts [OPTIONS]", (
                ("0", "printed, even if it is none"),
                ("2", "the options or the hostfile are wrong"))),
    Command("worker", "Serve SSH to the launcher until told to stop.", "mpiboot worker [OPTIONS]", (
                ("0", "its launcher is gone"),
                ("128+N", "signal N ended it"),
                ("2", "the options or the keys are wrong"),
                ("74", "data could not be fetched or stored"),
                ("124", "its launcher did not come in time"),
                ("other", "sshd's own, if it ended by itself"))),
)  # fmt: skip


class OptionError(UserError):
    """The command line is wrong; names all that is wrong with it."""


class Parsed(NamedTuple):
    """Every option of the command by its key, given or not, and the words of the command to run."""

    values: Mapping[str, str]
    command: tuple[str, ...]
    help: bool = False


def options_of(command: str) -> tuple[Option, ...]:
    return tuple(option for option in OPTIONS if command in option.commands)


def command_named(name: str) -> Command:
    return next(command for command in COMMANDS if command.name == name)


def parse(name: str, argv: Sequence[str], environ: Mapping[str, str]) -> Parsed:
    """The command line `mpiboot NAME ARGV...`: an option given beats its variable, which beats the default."""
    known = {option.flag: option for option in options_of(name)}
    values = {o.key: environ.get(o.variable, "") or o.default for o in known.values()}
    problems: list[str] = []
    words = list(argv)
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word in ("-h", "--help"):
            return Parsed(values, (), help=True)
        flag, equals, value = word.partition("=")
        option = known.get(flag)
        if option is None:
            problems.append(f"unknown option {flag}{nearest(flag, known)}")
        elif not option.metavar:
            values[option.key] = value or "1"
        elif equals or words:
            values[option.key] = value if equals else words.pop(0)
        else:
            problems.append(f"{flag} needs a value: {option.metavar}")
    problems += [
        f"{o.flag} must be one of {', '.join(o.choices)}, is {values[o.key]!r}"
        for o in known.values()
        if o.choices and values[o.key] not in o.choices
    ]
    if words and name != "launch" and not problems:
        problems.append(f"'mpiboot {name}' runs no command, but was given {words[0]!r}")
    if problems:
        raise OptionError("; ".join(problems) + f"; see: mpiboot {name} --help")
    return Parsed(values, tuple(words))


def help_text(name: str) -> str:
    """What `mpiboot NAME --help` prints."""
    command = command_named(name)
    rows = [(_left(option), _right(option)) for option in options_of(name)]
    codes = [*command.exit_codes]
    parts = (f"Usage: {command.usage}", f"  {command.summary}", _table("Options:", rows), _table("Exit codes:", codes))
    return "\n\n".join(parts) + "\n"


def _left(option: Option) -> str:
    return f"{option.flag} {option.metavar}".strip()


def _right(option: Option) -> str:
    default = option.default or ("off" if not option.metavar else "")
    shown = f" Default: {default}." if default else ""
    choices = f" One of {', '.join(option.choices)}." if option.choices else ""
    return f"{option.help}{choices}{shown} [{option.variable}]"


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    import textwrap

    lines = [title]
    for left, right in rows:
        first, *more = textwrap.wrap(right, 84)
        lines.append(f"  {left:<24}{first}" if len(left) < 24 else f"  {left}\n{'':26}{first}")
        lines += [f"{'':26}{line}" for line in more]
    return "\n".join(lines)
