"""AsmEvo: verified, faster drop-in replacements for compiled AMD GPU kernels."""

__version__ = "0.1.0"
