"""Replacements where a host program loads them, and out again.

Nothing here knows the registry: replacements arrive as `Substitute`. A tree is changed file by
file, matched by content; what was changed and how to undo it is kept inside the tree.
"""
