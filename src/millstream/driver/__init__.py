"""The driver: plans batches, has a runner execute them, then commits and publishes them.

    cycle          the pure state machine of a batch: takes events, returns instructions
    driver         the shell that carries out the cycle's instructions
    job, stages    the job that is sent to a batch's tasks, and the tasks themselves
    job_store      opens the store for the tasks of a job
    runner         the interface of whatever runs tasks; in_process is the runner without Spark
    run            runs an application from start to end; report: what it shows of it
    batch_warnings what a run warns of
    worker_thread  carries out tasks in the background

    startup/       start prepares a store; recovery: the checks on an existing store before a start
                   changes it; compatibility, change_plan, slate_shape, nested_fields: is it
                   still the same application; slate_consequences, consequence, refused_settings:
                   what a changed one means for the store; format_upgrade; leadership: one
                   driver at a time; addresses; background_start: what is slow starts beside it
    batch_plan/    planner decides how much input the next batch takes, by pace; next_beat: its
                   clock and horizon; seat_plan: the hosts of its tasks
    inputs/        source_inputs reads a source's records, kafka_input those of a topic;
                   topic_chunks: a task's part of it; input_watch notices new ones;
                   input_shares: who reads what; jump_filter: times that look wrong
    outputs/       publisher publishes staged output to the sinks; output_sinks, table_sinks: the
                   sink of an address; sink_retry retries one that fails
    durability/    disk_flush flushes several batches to disk together; shared_flush, base_writer:
                   a shared store
    pour/          poured_log: events that another program's batches pour into a source;
                   pour_storage, place_pour_storage: what must last of that; background_run: the
                   run that takes them in
    maintenance/   resharding, shared_resharding, slate_migration: rewrites of a whole store

Nothing here imports pyspark: `millstream.spark` has the runner on Spark.
"""
