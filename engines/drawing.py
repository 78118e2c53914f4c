"""The timeline of a job for `-v` and `--timeline FILE.svg`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.engines.marks import Marks
    from mpiboot.engines.output import Output


class Drawing:
    """Made before the job starts, so that a file which cannot be written is told before anything has run."""

    def __init__(self, file: str | None, *, verbose: bool) -> None:
        self._file = Path(file) if file else None
        self._verbose = verbose
        if self._file:
            _check(self._file)

    @property
    def wanted(self) -> bool:
        return self._verbose or self._file is not None

    def draw(self, marks: Marks, output: Output) -> None:
        """Write the file, and print the events with -v."""
        if not self.wanted:
            return
        from mpiboot.engines import timeline

        events = marks.events()
        if self._verbose:
            output.say(f"what happened when\n{timeline.text(events).rstrip()}")
        if self._file:
            try:
                self._file.write_text(timeline.svg(events), "utf-8")
            except OSError as error:
                output.say(f"cannot write the timeline {self._file}: {error.strerror}")
            else:
                output.note(f"the timeline is in {self._file}")


def _check(file: Path) -> None:
    try:
        existed = file.exists()
        with file.open("ab"):
            pass
        if not existed:
            file.unlink()
    except OSError as error:
        raise UserError(f"cannot write the timeline {file}: {error.strerror}; name another file: --timeline") from error
