"""Counts the steps that were checked, for the last line of `tfsafe run`."""


class Tally:
    """Number of steps whose results were looked at.

    Attributes:
      failed: Number of errors that the checks have raised.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Starts to count from 0."""
        self.calls = self.gradients = self.failed = 0

    @property
    def steps(self) -> int:
        """The gradients that eager code took, or the calls of functions if more.

        A step of an eager loop calls functions as well; a compiled one takes no
        gradient in eager code, but the program may do so after it.
        """
        return max(self.gradients, self.calls)


TALLY = Tally()
