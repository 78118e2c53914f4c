"""How workers report that they are up, and how launchers hear of it."""
