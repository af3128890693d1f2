"""From sound to what a network takes: integers that the device computes bit for bit the same."""
