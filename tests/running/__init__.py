"""Runs the suite in tiers, in workers whose memory is limited, in a random order.

`tiers` chooses what `make test` runs; `order` shuffles the cases of a file; `worker` is
a process that runs one file after another and measures each; `__main__` distributes the
files to the workers: `python -m tests.running --tier one`; `figures` prints what they
measured; `matrix` repeats tier one on other versions.

TensorFlow keeps what XLA compiled for as long as the process lives, so a worker that
has grown too large is replaced by a new one, in the middle of a file if need be.
"""
