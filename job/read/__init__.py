"""Manifests of every API version become one checked Job."""
