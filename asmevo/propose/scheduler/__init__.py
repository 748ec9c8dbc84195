"""Reorders the instructions of hot traces for a machine, waits and wait states included."""
