"""Formulas whose parts overflow or vanish where their result does not.

`fractions` has quotients, `harmonic` sums of reciprocals, `power_means` means and sums
of powers, `log_products` logarithms and powers of products, `bessel` logarithms and the
ratio of Bessel functions, `weighted_exponentials` weights times exponentials.

    from tfsafe.ops.formulas.out_of_range import bessel
    bessel.log_bessel_i0(x)
"""
