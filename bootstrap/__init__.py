"""The launcher's story and the worker's entrypoint."""
