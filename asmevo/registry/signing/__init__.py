"""Who vouches for a replacement: keys, statements, signatures, trust."""
