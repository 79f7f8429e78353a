"""Push or pull: the rates and costs of a pair, the cheaper side, and a target for latency."""
