"""Files that carry code objects: offload bundles, host libraries, archives, wheels."""
