"""What can be looked up in a registry beside what a search needs."""
