-- Grain: one row a run of the file just read, typed; of several records of one run the best.
-- `record` says which of two is better: the finished one, then the one seen last, then by content. It is a
-- total order, so files lead to the same store whatever the order in which they are loaded.
with typed as (
    select
        cluster,
        workload_id,
        cast(submitted_at as timestamp) as submitted_at,
        cast(started_at as timestamp) as started_at,
        cast(eligible_at as timestamp) as eligible_at,
        cast(ended_at as timestamp) as ended_at,
        cast($observed_until as timestamp) as observed_until,
        cast(gpus as decimal(18, 6)) as gpus,
        coalesce(gpu_type, '') as gpu_type,
        coalesce(account, '') as account,
        coalesce(user_name, '') as user_name,
        coalesce(partition, '') as partition,
        coalesce(qos, '') as qos,
        coalesce(state, '') as state,
        walltime_s,
        minimum_runtime_s,
        is_resumable,
        coalesce(is_charged, true) as is_charged,
        priority,
        utilization_ratio,
        coalesce(hosts, '') as hosts,
        line
    from incoming
),

ranked as (
    select
        *,
        struct_pack(
            eligible_at := eligible_at, ended_at := ended_at, gpus := gpus, gpu_type := gpu_type,
            account := account, user_name := user_name, partition := partition, qos := qos, state := state,
            walltime_s := walltime_s, minimum_runtime_s := minimum_runtime_s, is_resumable := is_resumable,
            is_charged := is_charged, priority := priority, utilization_ratio := utilization_ratio,
            hosts := hosts
        ) as content,
        struct_pack(
            is_ended := ended_at is not null, observed_until := observed_until, content := content
        ) as record
    from typed
)

select
    *,
    cast($batch_id as integer) as batch_id
from ranked
qualify row_number() over (
    partition by cluster, workload_id, submitted_at, started_at
    order by record desc, line desc
) = 1
