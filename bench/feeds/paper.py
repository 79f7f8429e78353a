"""The figures that the paper gives in its text, for comparison.

Its Figures 4 to 10 are pictures without figures in the text, but for these.
"""

from __future__ import annotations

THRESHOLD = 3.0
"""Section 5.2: the push threshold with the least load."""
PUSH_OVER_PULL, PULL_OVER_PUSH = 0.47, 0.23
"""Section 5.2: how much more Push All costs than Push None with many events, and the other way
round with many queries."""
GAIN, GAIN_SKEWED = 0.14, 0.30
"""Section 5.2.1: how much less hybrid costs than the better of the two at 16:1, with moderate and
with high skew."""
