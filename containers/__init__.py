"""The container engine of this machine."""
