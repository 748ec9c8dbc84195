"""Whether a registry is what it was: every blob, row, reference, statement and signature.

Each part gives `Finding`; `verify` puts them together.
"""
