"""Millstream on Spark: the only package that imports pyspark.

`runner` runs batches as Spark jobs, in a SparkContext that `context` opens; `worker` is what its
Python workers do. `dump` writes slates in parallel.
"""
