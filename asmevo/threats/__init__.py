"""The threat model as candidates: ways to fake a speedup, and rewrites that must not be refused."""
