"""How workers report that they accept connections, and how launchers hear of it: docs/checkin.md."""
