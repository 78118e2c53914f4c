"""Prototypes: manifests made from a name and parameters, with the words of ksonnet's users. Pure."""
