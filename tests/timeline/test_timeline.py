"""The timeline as text and as a picture."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from mpiboot.engines.timeline.events import Event, Lane, in_order, lanes
from mpiboot.engines.timeline.scale import START_PART, scale_for
from mpiboot.engines.timeline.style import COLOURS
from mpiboot.engines.timeline.svg import PHASES, draw, labels, phases
from mpiboot.engines.timeline.text import lines

SVG = "{http://www.w3.org/2000/svg}"
EVENTS = [
    Event("created", "job", 0.0),
    Event("created", "worker-0", 0.08),
    Event("started", "worker-0", 0.31),
    Event("checked in", "worker-0", 0.62),
    Event("created", "launcher", 0.15),
    Event("started", "launcher", 0.52),
    Event("ready", "launcher", 0.73),
    Event("exec", "launcher", 0.76),
    Event("first rank", "launcher", 1.02),
    Event("exit", "launcher", 1.31),
    Event("done", "job", 1.44),
]
NASTY = '<b>"&\'\x00\x1b\ud800\ufffe]]>é日'


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(picture).iter(f"{SVG}text")]


def test_text_is_ordered_and_shows_how_long_each_step_took() -> None:
    assert lines(reversed(EVENTS[:4])) == (
        "    0.000 s    +0.000  job       created\n"
        "    0.080 s    +0.080  worker-0  created\n"
        "    0.310 s    +0.230  worker-0  started\n"
        "    0.620 s    +0.310  worker-0  checked in\n"
    )


def test_no_events_are_no_error() -> None:
    assert lines([]) == "no events\n"
    assert "nothing happened" in texts(draw([]))


def test_the_picture_shows_every_lane_and_the_moment_of_the_first_rank() -> None:
    shown = texts(draw(EVENTS, "default/pi"))
    assert [name for name in shown if name in ("job", "launcher", "worker-0")] == ["job", "launcher", "worker-0"]
    assert "default/pi" in shown
    assert "first rank after 1.020 s, over after 1.440 s" in shown
    assert "first rank 1.020 s" in shown


def test_each_event_has_a_mark_with_its_name_and_time_on_hovering() -> None:
    marks = ET.fromstring(draw(EVENTS)).iter(f"{SVG}circle")
    given = [mark.findtext(f"{SVG}title") for mark in marks]
    assert sorted(filter(None, given)) == sorted(f"{event.name} {event.at_seconds:.3f} s" for event in EVENTS)


def test_a_screen_reader_gets_all_events_as_text() -> None:
    root = ET.fromstring(draw(EVENTS, "default/pi"))
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == "default/pi"
    assert all(f"{event.process} {event.name}" in (description.text or "") for event in EVENTS)


def test_the_same_events_give_the_same_bytes_in_any_order() -> None:
    shuffled = EVENTS[:]
    random.Random(4).shuffle(shuffled)
    assert draw(shuffled) == draw(EVENTS)
    assert lines(shuffled) == lines(EVENTS)


@pytest.mark.parametrize("nasty", [NASTY, "x" * 500, "", "]]>", "<script>alert(1)</script>"])
def test_any_name_leaves_the_picture_well_formed(nasty: str) -> None:
    root = ET.fromstring(draw([Event(nasty, nasty, 0.5), Event("created", f"worker{nasty}0", 0)], nasty))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "text", "line", "circle", "g",
    }  # fmt: skip


def test_light_and_dark_pages_paint_the_same_things() -> None:
    style = ET.fromstring(draw(EVENTS)).findtext(f"{SVG}style") or ""
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    painted = set(re.findall(r"([^{}]+)\{(?:fill|stroke):#[0-9a-f]{6}", dark))
    assert painted <= set(re.findall(r"([^{}]+)\{(?:fill|stroke):#[0-9a-f]{6}", light))
    for name in {name for names in painted for name in names.lstrip("{").split(",")}:
        assert name in style


def test_every_phase_that_an_event_begins_has_a_colour() -> None:
    assert set(PHASES.values()) - {"over"} <= set(COLOURS)


def test_of_a_thousand_workers_most_share_a_lane_with_the_latest_of_their_events() -> None:
    many = [Event("ready", f"worker-{i}", i / 1000) for i in range(1000)]
    shown = lanes([*EVENTS, *many])
    assert len(shown) == 20
    assert [lane.process for lane in shown[:4]] == ["job", "launcher", "worker-0", "worker-1"]
    assert shown[-1] == Lane("983 more, the latest", (Event("ready", "983 more, the latest", 0.999),))
    assert len(draw([*EVENTS, *many])) < 40_000


def test_worker_2_comes_before_worker_10() -> None:
    shown = lanes([Event("x", f"worker-{i}", 0) for i in (10, 2)])
    assert [lane.process for lane in shown] == ["worker-2", "worker-10"]


def test_phases_follow_each_other_and_an_unknown_event_changes_none() -> None:
    given = [("created", 0), ("surprise", 1), ("started", 2), ("ready", 3)]
    lane = Lane("w", tuple(Event(name, "w", at) for name, at in given))
    assert phases(lane, 9) == [("setting-up", 0, 2), ("coming-up", 2, 3), ("ready", 3, 9)]


def test_a_worker_that_did_not_check_in_is_ready_when_its_launcher_found_all_ready() -> None:
    without = Lane("worker-0", (Event("started", "worker-0", 1),))
    assert phases(without, 9, all_ready=3) == [("coming-up", 1, 3), ("ready", 3, 9)]
    given = Lane("worker-0", (Event("started", "worker-0", 1), Event("checked in", "worker-0", 2)))
    assert phases(given, 9, all_ready=3) == [("coming-up", 1, 2), ("ready", 2, 9)]
    gone = Lane("worker-0", (Event("started", "worker-0", 1), Event("exit", "worker-0", 2)))
    assert phases(gone, 9, all_ready=3) == [("coming-up", 1, 2)]
    others = Lane("launcher", (Event("started", "launcher", 1),))
    assert phases(others, 9, all_ready=3) == [("coming-up", 1, 9)]
    picture = ET.fromstring(draw([*without.events, Event("ready", "launcher", 3)]))
    assert sum(1 for bar in picture.iter(f"{SVG}rect") if bar.get("class") == "ready") == 3, "two bars and the legend"
    assert sum(1 for _ in picture.iter(f"{SVG}circle")) == 2, "only real events have marks"


def test_a_worker_that_ended_and_came_back_leaves_a_gap() -> None:
    given = [("started", 0), ("exit", 1), ("started", 3), ("exit", 4)]
    lane = Lane("w", tuple(Event(name, "w", at) for name, at in given))
    assert phases(lane, 9) == [("coming-up", 0, 1), ("coming-up", 3, 4)]


def test_labels_never_overlap_and_the_important_one_is_written() -> None:
    crowd = Lane("w", tuple(Event(name, "w", 0.5 + i / 1000) for i, name in enumerate(PHASES)))
    placed = labels(crowd, scale_for(crowd.events, 100, 800))
    assert [event.name for event, _ in placed] == ["first rank"]


@pytest.mark.parametrize("last", [1e-9, 0.004, 0.2, 1.0, 1.02, 9.99, 73, 5000, 86400])
def test_the_axis_holds_all_events_in_few_round_steps(last: float) -> None:
    scale = scale_for([Event("ready", "w", last)], 100, 800)
    assert 100 <= scale.x(0) <= scale.x(last) <= 900
    assert scale.seconds >= last
    assert 4 <= len(scale.ticks()) - 1 <= 10
    assert len({label for _, label in scale.ticks()}) == len(scale.ticks())


def test_a_long_run_is_folded_so_that_the_start_stays_large() -> None:
    long = [replace(e, at_seconds=e.at_seconds + 3600) if e.name in ("exit", "done") else e for e in EVENTS]
    scale = scale_for(in_order(long), 0, 1000)
    assert scale.fold
    assert scale.x(1.02) > 500, "the start takes most of the width"
    assert scale.x(1.02) < 1000 * START_PART < scale.fold < scale.x(3601.31) < scale.x(3601.44) <= 1000
    assert 'class="fold"' in draw(long)
    assert 'class="fold"' not in draw(EVENTS)


def test_time_never_runs_backwards_on_a_folded_axis() -> None:
    scale = scale_for([Event("created", "w", 1), Event("exit", "w", 100), Event("done", "job", 101)], 0, 1000)
    points = [scale.x(i / 10) for i in range(1011)]
    assert points == sorted(points)
