"""Learners. Each learner turns a run into a fitted predictor, its costs and its weights on disk."""
