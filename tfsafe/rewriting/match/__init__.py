"""Recognises the parts that hand-written formulas are made of.

`arithmetic` knows sums, products, squares, roots and constants that change no shape;
`reductions` knows sums, means and norms over axes, and changes of shape that keep the
elements in order; `products`, `linear` and `quotients` take tensors apart into factors,
terms and divisors. `trees` compiles a formula written as a tuple, such as
`("Sub", ("Exp", "x"), 1)`, into the match function of a rule; `index` leaves out the
formulas that cannot fit. All of it reads the graph through `facts` and builds nothing
before the planner asks for it.

May import: `tfsafe.graph`, `rewriting.facts` and `rewriting.engine.rule`.

Example: `squared(reader, tensor)` returns what `tensor` is the square of, however it is
written, or None.
"""
