"""Prediction: every output is a feature of nodes, edges or graphs that is learned from targets."""
