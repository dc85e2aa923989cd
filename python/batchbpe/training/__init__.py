"""Training: from data to a model. `train` is in `train`, the paper's Listing 1 in `loop`."""
