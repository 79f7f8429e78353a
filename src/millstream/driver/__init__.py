"""The driver: plans batches, has a runner execute them, then commits and publishes them.

    cycle          the pure state machine of a batch: takes events, returns instructions
    driver         the shell that carries out the cycle's instructions
    job, stages    the job that is sent to a batch's tasks, and the tasks themselves
    job_store      opens the store for the tasks of a job
    runner         the interface of whatever runs tasks; in_process is the runner without Spark
    run            runs an application from start to end; report: what it shows of it
    slate_warnings warnings about slates that need attention
    worker_thread  carries out tasks in the background

    startup/       start prepares a store; recovery: the checks on an existing store before a start
                   changes it; compatibility, change_plan, slate_shape: is it still the same
                   application; format_upgrade; leadership: one driver at a time; addresses
    batch_plan/    planner decides how much input the next batch takes, by pace; next_beat: its
                   clock and horizon; seat_plan: the hosts of its tasks
    inputs/        source_inputs reads a source's records, kafka_input those of a topic;
                   input_watch notices new ones; jump_filter, dead_input: records that look wrong
    outputs/       publisher publishes staged output to the sinks; sink_retry retries one that fails
    durability/    disk_flush flushes several batches to disk together; shared_flush, base_writer:
                   a shared store
    pour/          events that another program's batches pour into a source
    maintenance/   resharding, shared_resharding, slate_migration: rewrites of a whole store

Nothing here imports pyspark: `millstream.spark` has the runner on Spark.
"""
