"""Replacements: what makes a candidate one, and which there are."""
