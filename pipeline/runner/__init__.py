"""Running the stages: workspaces, locks, DVC, and what a person or a script is told."""
