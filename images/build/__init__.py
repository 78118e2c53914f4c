"""Builds of our images, their tags, their publication and their SBOM."""
