"""An elastic program of our own, for jobs that shall show the plumbing alone."""

from __future__ import annotations

from pathlib import Path

PROGRAM = Path(__file__).parent / "systems" / "d_elastic" / "horovodrun"


def command(sizes: str = " 2 3 1 2") -> list[str]:
    """The words of the program that ends when so many hosts were listed, one number after the other."""
    script = f"ELASTIC_SIZES='{sizes}'\n{PROGRAM.read_text()}"
    options = ["-np", "2", "--min-np", "1", "--max-np", "3", "--host-discovery-script", "/etc/mpi/discover_hosts.sh"]
    return ["sh", "-c", script, "horovodrun", *options]
