"""What a finding says about the training around it: model, optimizer, past steps.

`layers` finds the Keras layer of an operation, `bookkeeping` variables that only repeat
others, `optimizer` the number and rate of the step, `history` what came before it,
`growth` how far it has moved the weights, and `context` the versions, the device and
the health of the layers.

May import: `tfsafe.graph`, `tfsafe.errors`. Example: "step 412, learning rate 0.001".
"""
