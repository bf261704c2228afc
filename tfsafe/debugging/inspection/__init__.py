"""Shows the contents of tensors: summaries, plots, web pages, retained gradients.

Knows how to count NaN, infinities, zeros and subnormal numbers of any dtype
(`summary`), how to draw a tensor in letters (`pictures`) or with matplotlib (`plot`),
and how to keep gradients of layer outputs (`retain`). It knows nothing of checks.

May import: `debugging.values` and the modules at the root of tfsafe.

    stats = pictures.stats_of("kernel", np.array([[1.0, np.nan]]))
"""
