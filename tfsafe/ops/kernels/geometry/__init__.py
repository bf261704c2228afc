"""Lengths, angles and cosines of vectors, at length 0 and where a cosine rounds to 1.

`lengths` has the norms of rows, `plane` points of the plane, `angles` what is between
two vectors.

May import: the other kernels. Example: `lengths.euclidean(x, -1)` has slope 0 at 0.
"""
