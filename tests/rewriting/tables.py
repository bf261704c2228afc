"""The rules as production orders them, by family."""

from tfsafe.rewriting.rules.probability import logarithms, roots
from tfsafe.rewriting.rules.table import all_rules

_LOGARITHMS = {rule.name for rule in (*logarithms.RULES, *roots.RULES)}
LOGARITHMS = [rule for rule in all_rules() if rule.name in _LOGARITHMS]
# Without those for logarithms and exponentials, which are the first.
RULES = [rule for rule in all_rules() if rule.name not in _LOGARITHMS]
