"""The operator's log: one line for each message, JSON or text, with the name of the job."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar

JOB: ContextVar[str] = ContextVar("job", default="")  # NAMESPACE/NAME of the job that this task handles


class Json(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "job": JOB.get(),
            "message": record.getMessage(),
            "error": self.formatException(record.exc_info) if record.exc_info else "",
        }
        return json.dumps({key: value for key, value in line.items() if value})


class Text(logging.Formatter):
    """For a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        job = f"{JOB.get()}: " if JOB.get() else ""
        text = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d} {record.levelname.lower():7} "
        error = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{text}{job}{record.getMessage()}{error}"


def set_up(level: str, form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if form == "json" else Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
