"""The command line of the registry, one module a command."""
