"""The job's model, its readers, validation and plan. Nothing here does I/O."""
