"""The options of `mpiboot launch`, `wait`, `hosts` and `worker`: one table for the parser, the help and the docs."""

# A parser of our own: click takes 50 ms to import, and the job could have started in that time.
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LAUNCHER = ("launch", "wait", "hosts")


class Option(NamedTuple):
    """One option. Without `metavar` it is a switch. The environment variable applies if the option is not given."""

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
           "The workers' names and slots, in the form of any MPI.", LAUNCHER),
    Option("--addresses", "MPIBOOT_ADDRESSES", "FILE", "",
           "Lines 'NAME ADDRESS [PORT [USER]]'; read again when it changes. Without this file DNS resolves the names.",
           LAUNCHER),
    Option("--ssh-dir", "MPIBOOT_SSH_DIR", "DIR", "",
           "Where the job's SSH keys are mounted. Empty: the first of ~/.ssh, /home/mpiuser/.ssh and /root/.ssh that "
           "holds keys.", (*LAUNCHER, "worker")),
    Option("--init-timeout", "MPIBOOT_INIT_TIMEOUT", "SECONDS", "300",
           "How long the workers may take until their SSH answers; then exit 124. The time in which a worker waits for "
           "a machine or an image does not count, if the operator reports it.", LAUNCHER),
    Option("--min-workers", "MPIBOOT_MIN_WORKERS", "N", "0",
           "Elastic jobs: start when N workers are ready, and update the list of hosts from then on. 0: as many as "
           "the command's --min-np needs, or all workers if the job is not elastic.", LAUNCHER),
    Option("--probe", "MPIBOOT_PROBE", "HOW", "banner",
           "How to probe a worker that did not check in. banner: read its SSH greeting; all: log in to every worker; "
           "none: an address is enough.", LAUNCHER, ("banner", "all", "none")),
    Option("--host-keys", "MPIBOOT_HOST_KEYS", "HOW", "verify",
           "verify: a worker must show the job's host key. off: accept any host key.", LAUNCHER, ("verify", "off")),
    Option("--user", "MPIBOOT_SSH_USER", "NAME", "",
           "The SSH user on the workers. Empty: from the addresses, the check-in or the image's SSH configuration.",
           LAUNCHER),
    Option("--forward-env", "MPIBOOT_FORWARD_ENV", "NAMES", "",
           "Environment variables to pass to every rank, separated by commas or blanks; 'NCCL_*' stands for all that "
           "begin with NCCL_.", ("launch",)),
    Option("--restarts", "MPIBOOT_RESTARTS", "N", "0",
           "How often to run the command again on the same workers after it has failed.", ("launch",)),
    Option("--final-codes", "MPIBOOT_FINAL_CODES", "CODES", "",
           "Exit codes after which the command does not run again, like 2,64-78.", ("launch",)),
    Option("--lost-worker-timeout", "MPIBOOT_LOST_WORKER_TIMEOUT", "SECONDS", "40",
           "End the command when no packet has come from a worker for this long; 0: never. Elastic jobs have other "
           "rules.", ("launch",)),
    Option("--strict-placement", "MPIBOOT_STRICT_PLACEMENT", "", "",
           "End the job if all its ranks run on the launcher although other hosts have slots. Default: only warn.",
           ("launch",)),
    Option("--receive", "MPIBOOT_RECEIVE", "DIR", "",
           "Before the command starts, wait for the contents of DIR, which `mpiboot run` sends, and hand them on to "
           "the workers.", ("launch",)),
    Option("--give", "MPIBOOT_GIVE", "PATTERNS", "",
           "When the command has ended, wait until `mpiboot run` has fetched the files of --receive's DIR that match; "
           "one pattern a line.", ("launch",)),
    Option("--receive-timeout", "MPIBOOT_RECEIVE_TIMEOUT", "SECONDS", "120",
           "How long --receive waits without a byte of the directory; then exit 124. And how long --give waits.",
           ("launch",)),
    Option("--end-workers", "MPIBOOT_END_WORKERS", "", "",
           "End the workers when the command has ended. For workers without an operator.",
           ("launch",)),
    Option("--launcher", "MPIBOOT_LAUNCHER", "HOST", "",
           "Exit when the launcher HOST is gone: when its name has not resolved for 30 s. For workers without an "
           "operator.", ("worker",)),
    Option("--init-timeout", "MPIBOOT_INIT_TIMEOUT", "SECONDS", "300",
           "How long to wait for the launcher that --launcher names; then exit 124.", ("worker",)),
    Option("--download-from", "MPIBOOT_DOWNLOAD_FROM", "URI", "",
           "s3://BUCKET/PREFIX to download first; needs --download-to.", ("launch", "worker")),
    Option("--download-to", "MPIBOOT_DOWNLOAD_TO", "DIR", "", "The directory for the download.", ("launch", "worker")),
    Option("--upload-from", "MPIBOOT_UPLOAD_FROM", "DIR", "",
           "The directory to upload when the command has ended, or the worker's launcher; needs --upload-to.",
           ("launch", "worker")),
    Option("--upload-to", "MPIBOOT_UPLOAD_TO", "URI", "", "s3://BUCKET/PREFIX for the upload.", ("launch", "worker")),
    Option("--data-keys", "MPIBOOT_DATA_KEYS", "DIR", "",
           "A mounted Secret with files AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL and so on. Empty: "
           "boto3 looks for credentials by itself.", ("launch", "worker")),
    Option("--port", "MPIBOOT_PORT", "PORT", "2222",
           "The port of sshd.", ("worker",)),
    Option("--listen", "MPIBOOT_LISTEN", "ADDRESS", "",
           "The IP address on which sshd listens. Empty: all addresses.", ("worker",)),
)  # fmt: skip

COMMANDS = (
    Command("launch", "Wait for the workers, run a command, and exit with its exit code.",
            "mpiboot launch [OPTIONS] [--] COMMAND [ARGUMENT...]", (
                ("the command's own", "the command ran; 128+N if signal N ended it"),
                ("2", "the options, the hostfile or the keys are wrong"),
                ("74", "the data could not be downloaded or uploaded, or the directory not handed on"),
                ("124", "the workers were not ready, or the directory did not come, in time"),
                ("125", "mpiboot ended the job: a worker was lost, or --strict-placement"),
                ("126", "the command cannot be executed"),
                ("127", "the command was not found"))),
    Command("wait", "Wait for the workers and do nothing else.", "mpiboot wait [OPTIONS]", (
                ("0", "the workers are ready"),
                ("2", "the options, the hostfile or the keys are wrong"),
                ("124", "the workers were not ready in time"),
                ("128+N", "signal N ended the wait"))),
    Command("hosts", "Print the workers that are ready now, as HOST:SLOTS.", "mpiboot hosts [OPTIONS]", (
                ("0", "the list was printed, even if it is empty"),
                ("2", "the options or the hostfile are wrong"))),
    Command("worker", "Serve SSH to the launcher until a signal ends it.", "mpiboot worker [OPTIONS]", (
                ("0", "the launcher is gone"),
                ("128+N", "signal N ended it"),
                ("2", "the options or the keys are wrong"),
                ("74", "the data could not be downloaded or uploaded"),
                ("124", "the launcher did not start in time"),
                ("other", "sshd's exit code, if sshd ended by itself"))),
)  # fmt: skip


class Parsed(NamedTuple):
    """The value of every option of the command by its key, and the words of the command to run."""

    values: Mapping[str, str]
    command: tuple[str, ...]
    help: bool = False


def options_of(command: str) -> tuple[Option, ...]:
    return tuple(option for option in OPTIONS if command in option.commands)


def command_named(name: str) -> Command:
    return next(command for command in COMMANDS if command.name == name)


def parse(name: str, argv: Sequence[str], environ: Mapping[str, str]) -> Parsed:
    """The command line `mpiboot NAME ARGV...`. An option overrides its variable, which overrides the default."""
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
            from mpiboot.job.suggestions import nearest

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
        raise UserError("; ".join(problems) + f"; see: mpiboot {name} --help")
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
