"""The launcher waits for its workers: addresses, probes, the table of workers, progress."""
