"""Literature that several rules refer to."""

COMPLEMENT = "Maechler, Accurately Computing log(1 - exp(-|a|)), Rmpfr vignette, 2012"
LOGSUMEXP = (
    "Blanchard, Higham and Higham, IMA Journal of Numerical Analysis 41(4), 2021"
)
NORM = "Blue, ACM Transactions on Mathematical Software 4(1), 1978"
TWO_SUM = "identity; Knuth, The Art of Computer Programming 2, section 4.2.2"
VARIANCE = "Chan, Golub and LeVeque, The American Statistician 37(3), 1983"
ZERO_UPSTREAM = "the zero-upstream rule of tfsafe.ops"
