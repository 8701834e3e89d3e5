-- Grain: one row a run that the store does not have yet, or has in a poorer record.
-- A waiting record gives way to any start of the same submission.
with stored as (
    select
        cluster,
        workload_id,
        submitted_at,
        started_at,
        batch_id,
        line,
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
    from core_run
    where submitted_at between (select min(submitted_at) from stg_runs) and (select max(submitted_at) from stg_runs)
),

started as (
    select cluster, workload_id, submitted_at
    from stored
    where started_at is not null
    union
    select cluster, workload_id, submitted_at
    from stg_runs
    where started_at is not null
)

select
    stg.* exclude (content, record, batch_id, line),
    stored.cluster is null as is_new,
    -- a finished run seen again in a later log: only the moment it was last seen moves, it stays where it came from
    stored.cluster is not null and stg.ended_at is not null and stg.content = stored.content as is_confirmed,
    case when is_confirmed then stored.batch_id else stg.batch_id end as batch_id,
    case when is_confirmed then stored.line else stg.line end as line
from stg_runs as stg
left join stored
    on stg.cluster = stored.cluster
    and stg.workload_id = stored.workload_id
    and stg.submitted_at = stored.submitted_at
    and stg.started_at is not distinct from stored.started_at
left join started
    on stg.cluster = started.cluster
    and stg.workload_id = started.workload_id
    and stg.submitted_at = started.submitted_at
where
    (stored.cluster is null or stg.record > stored.record)
    and (stg.started_at is not null or started.cluster is null)
