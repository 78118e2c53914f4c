"""What is kept of jobs: the end of their output, within limits, whatever happens to the disk."""

from __future__ import annotations

import os
import random
import stat
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mpiboot.engines.records import prune
from mpiboot.engines.records import record as records
from mpiboot.engines.records.bounded_log import BoundedLog, LogReader
from mpiboot.engines.records.process_start import start_of
from mpiboot.engines.records.record import Record
from mpiboot.engines.records.writer import RecordWriter

if TYPE_CHECKING:
    from pathlib import Path


def record(name: str, run: str = "r1", **more: float | int) -> Record:
    me = os.getpid()
    return Record(name, "docker", run, "image", 2, 1000.0, me, start_of(me), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(100))
def test_a_log_keeps_its_end_within_its_limit(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    limit = rng.choice([2, 10, 64])
    log, written = BoundedLog(tmp_path / "log", limit), b""
    for _ in range(rng.randrange(40)):
        data = rng.randbytes(rng.randrange(limit * 2))
        log.write(data)
        written += data
    log.close()
    with closing(LogReader(tmp_path / "log")) as reader:
        kept = b"".join(reader.new())
    assert written.endswith(kept)
    assert len(kept) <= limit
    assert len(kept) >= min(len(written), limit // 2)


@pytest.mark.parametrize("seed", range(100))
def test_a_follower_misses_nothing_that_it_could_read(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    log, reader = BoundedLog(tmp_path / "log", 64), LogReader(tmp_path / "log")
    written = got = b""
    for _ in range(60):
        data = rng.randbytes(rng.randrange(16))
        log.write(data)
        written += data
        if rng.random() < 0.7 or len(written) - len(got) > 16:  # before the file was turned over twice
            got += b"".join(reader.new())
    got += b"".join(reader.new())
    reader.close()
    log.close()
    assert got == written


def test_a_record_is_for_its_user_alone(state: Path) -> None:
    writer = RecordWriter(keep=True, note=pytest.fail)
    writer.set_job(record("mine"))
    writer.output("launcher", "out", b"text\n")
    directory = records.directory_of("mine", "r1")
    assert directory.is_relative_to(state)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    writer.end(0)
    assert (directory / records.LOGS / "launcher.out").read_bytes() == b"text\n"


@pytest.mark.usefixtures("state")
def test_a_job_that_does_not_begin_leaves_no_record() -> None:
    writer = RecordWriter(keep=True, note=pytest.fail)
    writer.set_job(record("never"))
    writer.event("Message", message="pulling")
    writer.end(2, "no such image")
    assert records.records() == []


@pytest.mark.usefixtures("state")
def test_without_keep_the_record_ends_with_the_job() -> None:
    writer = RecordWriter(keep=False, note=pytest.fail)
    writer.set_job(record("brief"))
    writer.output("launcher", "out", b"text\n")
    assert [found.name for _, found in records.records()] == ["brief"]
    writer.end(0)
    assert records.records() == []


@pytest.mark.usefixtures("state")
def test_a_record_that_was_deleted_while_the_job_runs_is_not_made_again() -> None:
    writer = RecordWriter(keep=True, note=pytest.fail)
    writer.set_job(record("gone"))
    writer.output("launcher", "out", b"text\n")
    records.remove(records.directory_of("gone", "r1"))
    writer.output("launcher", "err", b"more\n")
    writer.end(0)
    assert records.records() == []


def test_a_directory_that_cannot_be_written_is_one_note(state: Path) -> None:
    notes: list[str] = []
    (state / "state").write_text("a file where the directory must be")
    writer = RecordWriter(keep=True, note=notes.append)
    writer.set_job(record("none"))
    for _ in range(3):
        writer.output("launcher", "out", b"text\n")
    writer.end(0)
    assert len(notes) == 1
    assert "the output of this job is no longer kept: Not a directory" in notes[0]


@pytest.mark.usefixtures("state")
def test_the_oldest_records_make_room_and_a_running_job_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "MOST_JOBS", 3)
    for number in range(5):
        writer = RecordWriter(keep=True, note=pytest.fail)
        writer.set_job(Record(f"job-{number}", "local", "r", "", 1, float(number), os.getpid(), start_of(os.getpid())))
        writer.begin()
        if number:
            writer.end(0)
    assert [found.name for _, found in records.records()] == ["job-4", "job-3", "job-2", "job-0"]


@pytest.mark.usefixtures("state")
def test_large_records_make_room_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "MOST_BYTES", 10_000)
    for number in range(3):
        writer = RecordWriter(keep=True, note=pytest.fail)
        writer.set_job(Record(f"job-{number}", "local", "r", "", 1, float(number), os.getpid(), start_of(os.getpid())))
        writer.output("launcher", "out", bytes(4_500))
        writer.end(0)
    assert [found.name for _, found in records.records()] == ["job-2", "job-1"]


@pytest.mark.usefixtures("state")
def test_only_records_of_ended_jobs_are_pruned_by_age() -> None:
    for name, ended in (("old", 100.0), ("new", time.time())):
        writer = RecordWriter(keep=True, note=pytest.fail)
        writer.set_job(record(name))
        writer.begin()
        writer.end(0)
        records.write(records.directory_of(name, "r1"), record(name, ended=ended))
    running = RecordWriter(keep=True, note=pytest.fail)
    running.set_job(record("runs"))
    running.begin()
    assert [found.name for _, found in prune.older_than(time.time() - 3600)] == ["old"]
