"""How well the cycle model agrees with figures that others measured on hardware."""
