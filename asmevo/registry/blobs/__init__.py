"""The contents of a registry: stores of blobs that are addressed by their SHA-256."""
