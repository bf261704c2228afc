"""Facts about tensors of a graph: constants, bounds, finiteness."""
