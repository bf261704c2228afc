"""Formulas of the collection that `stabilize` does not repair yet, by family.

Each with what is missing. A formula that becomes right leaves the list:
`tests/rewriting/test_collection.py` fails until it does.
"""

from collections.abc import Mapping

OPEN: Mapping[str, Mapping[str, str]] = {
    "domains missed by rounding": {
        "angle between a vector and itself": "the rounding is not put right",
        "sine from a cosine of one": "the rounding is not put right",
        "hyperbolic distance of the Poincare ball": "the rounding is not put right",
    },
    "exponentials in loops": {
        "forward algorithm by scan": "the state of the loop is not a logarithm",
        "forward algorithm by while_loop": "the state of the loop is not a logarithm",
        "weighted running mean with exponential gates": "the state of the loop is not a logarithm",
        "linear attention with elu + 1": "the state of the loop is not a logarithm",
        "likelihood of a path as a scanned product": "the state of the loop is not a logarithm",
    },
    "half precision": {
        "RMS norm of large activations": "computed in half precision inside",
        "RMS norm of small activations": "computed in half precision inside",
        "cosine similarity of large vectors": "computed in half precision inside",
        "mean of many large numbers": "computed in half precision inside",
        "root mean square error of large errors": "computed in half precision inside",
        "Adam's quotient with an epsilon that is 0": "computed in half precision inside",
        "harmonic mean of small numbers": "computed in half precision inside",
    },
    "likelihoods": {
        "negative binomial with a large dispersion": "no rule knows the formula",
        "Student's t with many degrees of freedom": "no rule knows the formula",
        "Dirichlet multinomial with large concentrations": "no rule knows the formula",
        "logarithm of the beta function, one argument large": "no rule knows the formula",
        "KL divergence of nearly equal large Dirichlets": "no rule knows the formula",
        "interval of the normal distribution in the tail": "no rule knows the formula",
        "normal survival log(1 - cdf)": "no rule knows the formula",
        "inverse Mills ratio": "no rule knows the formula",
        "evidential regression log(pi / softplus(z))": "no rule knows the formula",
        "logarithm of softplus": "no rule knows the formula",
        "logarithm of the Bessel function i0": "no rule knows the formula",
        "ratio of Bessel functions of von Mises": "no rule knows the formula",
        "von Mises log density": "no rule knows the formula",
        "log determinant of a product of triangular matrices": "no rule knows the formula",
    },
    "removable singularities": {
        "versine over the square": "no rule knows the limit",
        "versine over the square behind where": "no rule knows the limit",
        "third coefficient of the exponential map": "no rule knows the limit",
        "asin over its argument": "no rule knows the limit",
        "Langevin function coth(x) - 1/x": "no rule knows the limit",
        "quaternion of an axis-angle vector": "no rule knows the limit",
        "Rodrigues' rotation by a zero angle": "no rule knows the limit",
        "SABR's z over x(z) at the money": "no rule knows the limit",
    },
    "vision and audio": {
        "scale-invariant SDR": "the squares vanish; the signals are not scaled first",
    },
}
