"""What is wrong, outdated or surprising in manifests: lint, advice and conversion."""
