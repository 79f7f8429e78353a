"""The counter of `on_millstream`, for `millstream run`."""

from bench.on_millstream import counter

app = counter("arrival")
