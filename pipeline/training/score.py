"""What a recipe chose its weights by, where that is more than the accuracy on validation images."""

SCORE = "score_validation"
"""In ``weights.npz``: the accuracy on the validation images and distorted copies of them."""
