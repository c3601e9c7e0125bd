"""One folder per feature; the registry finds them by name."""
