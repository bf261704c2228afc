"""Shows what tensors hold: summaries, plots, reports, retained gradients."""
