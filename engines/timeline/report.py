"""The timeline of a job, printed for `-v` and drawn for `--timeline FILE.svg`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.engines.output import Output
    from mpiboot.engines.timeline.recorder import EventRecorder


class TimelineReport:
    """Made before the job starts, so that a file that cannot be written is an error before anything runs."""

    def __init__(self, file: str | None, *, verbose: bool) -> None:
        self._file = Path(file) if file else None
        self._verbose = verbose
        if self._file:
            _check(self._file)

    @property
    def wanted(self) -> bool:
        return self._verbose or self._file is not None

    def write(self, recorder: EventRecorder, output: Output) -> None:
        """Write the file, and print the events with -v."""
        if not self.wanted:
            return
        from mpiboot.engines.timeline import svg, text

        events = recorder.events()
        if self._verbose:
            output.say(f"timeline\n{text.lines(events).rstrip()}")
        if self._file:
            try:
                self._file.write_text(svg.draw(events), "utf-8")
            except OSError as error:
                output.say(f"cannot write the timeline {self._file}: {error.strerror}")
            else:
                output.note(f"the timeline is in {self._file}")


def _check(file: Path) -> None:
    if file.suffix.lower() not in {"", ".svg"}:
        raise UserError(f"--timeline draws an SVG; name a file that ends in .svg: {file.with_suffix('.svg')}")
    try:
        existed = file.exists()
        with file.open("ab"):
            pass
        if not existed:
            file.unlink()
    except OSError as error:
        raise UserError(f"cannot write the timeline {file}: {error.strerror}; name another file: --timeline") from error
