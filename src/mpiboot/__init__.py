"""Run MPI programs on many machines. The parts live in the folders at the top of the repository."""

__version__ = "0.1.0"
