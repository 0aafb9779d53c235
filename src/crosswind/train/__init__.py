"""Training: demonstrations out of certified draws, and the scripts that fine-tune a model on them."""
