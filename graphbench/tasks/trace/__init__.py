"""Algorithms that show their steps: a model predicts hints and outputs from step to step."""
