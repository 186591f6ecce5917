"""Models: an encoder, a processor and decoders, chosen from the features of a dataset; see ``build.build_model``."""
