"""A small elastic program for jobs that test how hosts are found, without Horovod."""

from __future__ import annotations

from pathlib import Path

PROGRAM = Path(__file__).parent / "systems" / "d_elastic" / "horovodrun"


def command(sizes: str = " 2 3 1 2") -> list[str]:
    """The command of the program. It ends once it has seen these numbers of hosts, one after the other."""
    script = f"ELASTIC_SIZES='{sizes}'\n{PROGRAM.read_text()}"
    options = ["-np", "2", "--min-np", "1", "--max-np", "3", "--host-discovery-script", "/etc/mpi/discover_hosts.sh"]
    return ["sh", "-c", script, "horovodrun", *options]
