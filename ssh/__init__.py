"""Keys, configuration and the readiness probe of SSH."""
