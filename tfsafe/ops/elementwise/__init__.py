"""Functions of single numbers: logarithms, powers, quotients, angles."""
