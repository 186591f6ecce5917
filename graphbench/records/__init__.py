"""Records of runs: the model, the data, the budget and the scores."""
