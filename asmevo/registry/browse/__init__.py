"""What people and machines are told of a registry, gathered from it."""
