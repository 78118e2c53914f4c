"""A pod's manifest as values that an engine on this machine can start."""
