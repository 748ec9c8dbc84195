"""A device in a child process, for kernels that nobody trusts."""
