"""Formulas of the collection that `stabilize` does not repair yet, by family.

Each with what is missing. A formula that becomes right leaves the list:
`tests/rewriting/test_collection.py` fails until it does.
"""

from collections.abc import Mapping

OPEN: Mapping[str, Mapping[str, str]] = {
    "domains missed by rounding": {
        "angle between a vector and itself": "rounds outside",
        "sine from a cosine of one": "rounds outside",
        "hyperbolic distance of the Poincare ball": "rounds outside",
    },
    "exponentials in loops": {
        "forward algorithm by scan": "carries no log",
        "forward algorithm by while_loop": "carries no log",
        "weighted running mean with exponential gates": "carries no log",
        "linear attention with elu + 1": "carries no log",
        "likelihood of a path as a scanned product": "carries no log",
    },
    "half precision": {
        "RMS norm of large activations": "half precision inside",
        "RMS norm of small activations": "half precision inside",
        "cosine similarity of large vectors": "half precision inside",
        "mean of many large numbers": "half precision inside",
        "root mean square error of large errors": "half precision inside",
        "Adam's quotient with an epsilon that is 0": "half precision inside",
        "harmonic mean of small numbers": "half precision inside",
    },
    "likelihoods": {
        "negative binomial with a large dispersion": "no rule yet",
        "Student's t with many degrees of freedom": "no rule yet",
        "Dirichlet multinomial with large concentrations": "no rule yet",
        "logarithm of the beta function, one argument large": "no rule yet",
        "KL divergence of nearly equal large Dirichlets": "no rule yet",
        "interval of the normal distribution in the tail": "no rule yet",
        "normal survival log(1 - cdf)": "no rule yet",
        "inverse Mills ratio": "no rule yet",
        "evidential regression log(pi / softplus(z))": "no rule yet",
        "logarithm of softplus": "no rule yet",
        "logarithm of the Bessel function i0": "no rule yet",
        "ratio of Bessel functions of von Mises": "no rule yet",
        "von Mises log density": "no rule yet",
        "log determinant of a product of triangular matrices": "no rule yet",
    },
    "removable singularities": {
        "versine over the square": "no rule yet",
        "versine over the square behind where": "no rule yet",
        "third coefficient of the exponential map": "no rule yet",
        "asin over its argument": "no rule yet",
        "Langevin function coth(x) - 1/x": "no rule yet",
        "quaternion of an axis-angle vector": "no rule yet",
        "Rodrigues' rotation by a zero angle": "no rule yet",
        "SABR's z over x(z) at the money": "no rule yet",
    },
    "vision and audio": {
        "scale-invariant SDR": "the squares vanish; the signals are not scaled first",
    },
}
