"""Formulas of the families of the collection, made at random, each with the exact form.

Beyond `grammar.py` and `programs.py`: quotients with a limit, angles, rotations,
segments, masks in half precision, likelihoods of gamma functions, exponentials carried
through loops, epsilons in half precision, variances and covariances, quotients of
segmentation masks. A formula is a core with its spellings, a quotient written in one of
several ways, inputs of one of several scales, weights and a reduction.
"""

from collections.abc import Callable

import numpy as np

from tests.rewriting import families_of_limits, families_of_sums
from tests.rewriting.drawing import HALF, Drawn, Made
from tests.rewriting.grammar import Expression

FAMILIES: dict[str, Callable[[Drawn], Made]] = {
    "quotient with a limit": families_of_limits.quotient_with_a_limit,
    "quotient of exponentials": families_of_limits.exponential_quotient,
    "angle": families_of_limits.angle,
    "rotation": families_of_limits.rotation,
    "segments": families_of_sums.of_segments,
    "mask in half precision": families_of_sums.half_mask,
    "likelihood": families_of_sums.likelihood,
    "hidden states": families_of_sums.hidden_states,
    "running quotient": families_of_sums.running_quotient,
    "epsilon in half precision": families_of_sums.half_epsilon,
    "moment": families_of_sums.moment,
    "overlap": families_of_sums.overlap,
    "mask after the fact": families_of_sums.mask_after,
}


def make(seed: int) -> Expression:
    """Returns the formula with this number."""
    drawn = Drawn(seed)
    made = FAMILIES[drawn.name(FAMILIES)](drawn)
    dtype = np.float16 if made.tolerance == HALF else np.float32
    text = ", ".join(drawn.words)
    inputs = made.inputs.astype(dtype)
    return Expression(text, made.naive, made.exact, inputs, (), made.tolerance)
