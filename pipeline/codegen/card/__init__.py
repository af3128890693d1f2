"""Plans of two tracks: one computes, one moves tiles between a card and the arena."""
