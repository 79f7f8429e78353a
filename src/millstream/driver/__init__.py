"""The driver: plans batches, has a runner execute them, then commits and publishes them.

    cycle          the pure state machine of a batch: takes events, returns instructions
    driver         the shell that carries out the cycle's instructions
    planner        decides how much input the next batch takes
    inputs         reads a source's records; input_watch notices new ones
    job, stages    the job that is sent to a batch's tasks, and the tasks themselves
    runner         the interface of whatever runs tasks; in_process is the runner without Spark
    recovery       the checks on an existing store before a start changes it
    flush          flushes several batches to disk together
    publisher      publishes staged output to the sinks; sink_retry retries a sink that fails
    run            runs an application from start to end

Nothing here imports pyspark: `millstream.spark` has the runner on Spark.
"""
