"""Operators of the KernelBench suite (levels 1 and 2) as HIP kernels, one launch an operator."""
