"""Profiles of real hardware, from the files that AMD's ``rocprofv3`` writes."""
