"""Replacements and everything that their evidence rests on, on their way between registries.

A `Stage` holds the rows of a shipment in a temporary registry: what is exported, pushed or imported
is checked there, by the same code that verifies whole registries, before anything else is done with
it. `format` is the bundle file that a stage and its blobs are written to.
"""
