"""The colours of the timeline, on light pages and on dark ones."""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """The colour of a phase on light and on dark pages, and its name in the legend; empty: not in the legend."""

    light: str
    dark: str
    meaning: str


COLOURS = {
    "whole": Colour("#98a2b3", "#667085", ""),
    "setting-up": Colour("#c3c9d3", "#566072", "being created"),
    "coming-up": Colour("#eaa53a", "#d9962f", "coming up, waiting"),
    "ready": Colour("#4a90d9", "#5a9fe6", "ready"),
    "running": Colour("#2e9e6b", "#3cb87f", "running"),
}

_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
# The halo around labels keeps them readable where they cross a line.
_SHAPES = (
    f"text{{font-family:{_FONT};font-size:12px}}"
    ".title{font-size:17px;font-weight:600}.name{font-size:13px}.small{font-size:10.5px}"
    ".label{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}"
    ".moment{stroke-width:1.5;stroke-dasharray:4 3}.mark{stroke-width:2}.fold{stroke-width:3}"
)


def style() -> str:
    """Plain classes, each written again for dark pages: some viewers of SVG have no variables."""
    light = _paint("#ffffff", "#1c2430", "#5c6675", "#e6e9ee", "#c2185b", {k: c.light for k, c in COLOURS.items()})
    dark = _paint("#12161d", "#e8ebf0", "#98a2b3", "#2a313c", "#ff6f9f", {k: c.dark for k, c in COLOURS.items()})
    return f"<style>{_SHAPES}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _paint(page: str, ink: str, dim: str, grid: str, moment: str, bars: dict[str, str]) -> str:
    return (
        f".page{{fill:{page}}}text{{fill:{ink}}}text.dim{{fill:{dim}}}.grid{{stroke:{grid}}}"
        f".label,.fold{{stroke:{page}}}.moment{{stroke:{moment}}}.mark{{fill:{page};stroke:{ink}}}"
        + "".join(f".{phase}{{fill:{colour}}}" for phase, colour in bars.items())
    )
