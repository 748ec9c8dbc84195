"""What kernels compute, in NumPy: the independent reference, and inputs that hang together."""
