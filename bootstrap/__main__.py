"""The commands that run inside containers. Only this file prints results and returns exit codes to the system."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mpiboot.bootstrap import config, options
from mpiboot.job.errors import UserError


def main(argv: list[str]) -> int:
    """The exit code of `mpiboot ARGV`, where ARGV starts with launch, wait, hosts or worker."""
    name, *rest = argv
    try:
        parsed = options.parse(name, rest, os.environ)
        if parsed.help:
            return _printed(options.help_text(name))
        if name == "worker":
            from mpiboot.bootstrap import worker

            return worker.run(config.worker(parsed, os.environ), os.environ, log)
        from mpiboot.bootstrap import launcher

        settings = config.launcher(parsed, os.environ)
        if name == "hosts":
            return _printed(launcher.hosts(settings, os.environ, log))
        return (launcher.launch if name == "launch" else launcher.wait)(settings, os.environ, log)
    except UserError as error:
        from mpiboot.bootstrap.process import termination

        log(str(error))
        termination.write(str(error))
        return error.exit_code
    except OSError as error:  # a full disk, for one
        log(f"{name}: {error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 2
    except KeyboardInterrupt:  # before signals are caught
        return 130


def _printed(text: str) -> int:
    """Write the text to stdout and return 0. A reader that stops early, like `head`, is no error."""
    if sys.stdout is None:
        return 0
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for the flush at the end
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise OSError(error.errno, error.strerror, "stdout") from error
    return 0


def log(text: str) -> None:
    with suppress(OSError):  # the reader of stderr has gone; the job goes on
        print(f"mpiboot: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
