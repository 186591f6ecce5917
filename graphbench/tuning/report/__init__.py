"""The pages of a tuning run, made from its ``result.json`` alone."""
