"""Random search over orders of hot traces, scored by a model and judged by the gates."""
