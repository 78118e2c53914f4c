"""Jobs of the images with DeepSpeed, on Docker: see tests/horovod/conftest.py."""

from tests.horovod.conftest import name, run, script

__all__ = ["name", "run", "script"]
