"""How that looks on a terminal."""
