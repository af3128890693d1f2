"""Addresses for what lives for a while: one allocator for every plan."""
