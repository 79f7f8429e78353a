"""What the driver does: it plans batches, has a runner run them, commits and publishes them.

    cycle          the pure state machine of a batch: what happened in, what to do out
    driver         the shell that carries out what the cycle says
    planner        what the next batch takes in
    inputs         where a source's records lie; input_watch tells when there are more
    job, stages    what a batch's tasks are sent, and what they do
    runner         the seam to whatever runs tasks; in_process is the runner without Spark
    recovery       what a start may do with the store that it finds
    flush          batches that are forced to disk together
    publisher      from staged output to the sinks; sink_retry when one of them fails
    run            an application from its start to its end

Nothing here imports pyspark: `millstream.spark` has the runner on Spark.
"""
