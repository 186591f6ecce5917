"""Training: configurations, the training loop, checkpoints, and scores of trained models."""
