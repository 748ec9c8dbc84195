"""What a registry keeps, and what it can do without."""
