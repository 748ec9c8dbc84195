"""Handing out a replacement after checking all that it rests on."""
