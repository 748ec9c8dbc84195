"""Tier 1 of the oracle: what a launch looks like, inferred from descriptor, metadata and code."""
