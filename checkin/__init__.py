"""How workers report that they accept connections, and how launchers receive that: docs/checkin.md."""
