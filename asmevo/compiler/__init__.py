"""Code objects that are compiled from a published package instead of being shipped in one."""
