"""Cards: what the datasets are."""
