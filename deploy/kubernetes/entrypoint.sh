#!/bin/bash
# Spark starts an executor's pod with the argument `executor` and passes the rest in variables.
# Any other arguments are a command: the driver or a reader.
set -euo pipefail

if [ "${1:-}" != executor ]; then
    exec "$@"
fi

options=()
number=0
while name="SPARK_JAVA_OPT_$number" && [ -n "${!name+set}" ]; do
    options+=("${!name}")
    number=$((number + 1))
done

exec java "${options[@]}" \
    "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "$SPARK_HOME/jars/*:$PWD" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
