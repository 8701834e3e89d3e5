-- Grain: one row a claimant (cluster, GPU type, account, user) and hour whose GPU time changes by this load.
-- A sweep: each run raises a level at its start and lowers it at its end, so the cost follows events, not
-- hours. Levels are millionths of a GPU; times milliseconds make the sums whole GPU-nanoseconds.
-- Replaced runs count negative, so the delta is all that has to be added to what is there.
-- A sum of bigints is exact but a hugeint, and a sum of hugeints a double (DuckDB 1.5): hence the casts.
with signed_runs as (
    select *, 1 as sign
    from run_arriving
    union all by name
    select *, -1 as sign
    from run_leaving
),

held as (
    select
        cluster, gpu_type, account, user_name,
        sign * cast(cast(gpus as decimal(28, 6)) * 1000000 as bigint) as level,
        utilization_ratio,
        case when is_charged then 'charged' else 'free' end as kind,
        epoch_ms(started_at) as from_ms,
        epoch_ms(least(coalesce(ended_at, observed_until), observed_until)) as to_ms
    from signed_runs
    where started_at is not null
),

waited as (
    select
        cluster, gpu_type, account, user_name,
        sign * cast(cast(gpus as decimal(28, 6)) * 1000000 as bigint) as level,
        cast(null as double) as utilization_ratio,
        case when is_charged then 'waiting_charged' else 'waiting_free' end as kind,
        -- never eligible is no demand; a log without the moment of eligibility counts from submission
        epoch_ms(coalesce(eligible_at, case when started_at is not null then submitted_at end)) as from_ms,
        epoch_ms(least(coalesce(started_at, ended_at, observed_until), observed_until)) as to_ms
    from signed_runs
),

stretches as (
    select
        *,
        case when utilization_ratio is not null then level else 0 end as measured,
        cast(round(level * coalesce(utilization_ratio, 0)) as bigint) as used
    from (select * from held union all by name select * from waited)
    where level <> 0 and to_ms > from_ms
),

events as (
    select cluster, gpu_type, account, user_name, kind, from_ms as at_ms, level, measured, used
    from stretches
    union all
    select cluster, gpu_type, account, user_name, kind, to_ms, -level, -measured, -used
    from stretches
),

by_hour as (
    select
        cluster, gpu_type, account, user_name, kind,
        at_ms // 3600000 as hour_index,
        cast(sum(level) as bigint) as level,
        cast(sum(measured) as bigint) as measured,
        cast(sum(used) as bigint) as used,
        cast(sum(level * (3600000 - at_ms % 3600000)) as bigint) as level_part,
        cast(sum(measured * (3600000 - at_ms % 3600000)) as bigint) as measured_part,
        cast(sum(used * (3600000 - at_ms % 3600000)) as bigint) as used_part
    from events
    group by all
),

running as (
    select
        *,
        cast(sum(level) over up_to_here as bigint) as level_after,
        cast(sum(measured) over up_to_here as bigint) as measured_after,
        cast(sum(used) over up_to_here as bigint) as used_after,
        lead(hour_index) over (partition by cluster, gpu_type, account, user_name, kind order by hour_index) as next_index
    from by_hour
    window up_to_here as (
        partition by cluster, gpu_type, account, user_name, kind order by hour_index rows unbounded preceding
    )
),

hours_with_events as (
    select
        cluster, gpu_type, account, user_name, kind, hour_index,
        (level_after - level) * 3600000 + level_part as gpu_ns,
        (measured_after - measured) * 3600000 + measured_part as measured_gpu_ns,
        (used_after - used) * 3600000 + used_part as used_gpu_ns
    from running
),

hours_between as (
    select
        cluster, gpu_type, account, user_name, kind,
        unnest(range(hour_index + 1, next_index)) as hour_index,
        level_after * 3600000 as gpu_ns,
        measured_after * 3600000 as measured_gpu_ns,
        used_after * 3600000 as used_gpu_ns
    from running
    where (level_after <> 0 or measured_after <> 0 or used_after <> 0) and next_index > hour_index + 1
)

select
    cluster,
    gpu_type,
    account,
    user_name,
    make_timestamp_ms(hour_index * 3600000) as hour,
    cast(coalesce(sum(gpu_ns) filter (where kind = 'charged'), 0) as bigint) as charged_gpu_ns,
    cast(coalesce(sum(gpu_ns) filter (where kind = 'free'), 0) as bigint) as free_gpu_ns,
    cast(coalesce(sum(gpu_ns) filter (where kind = 'waiting_charged'), 0) as bigint) as waiting_charged_gpu_ns,
    cast(coalesce(sum(gpu_ns) filter (where kind = 'waiting_free'), 0) as bigint) as waiting_free_gpu_ns,
    cast(sum(measured_gpu_ns) as bigint) as measured_gpu_ns,
    cast(sum(used_gpu_ns) as bigint) as used_gpu_ns
from (select * from hours_with_events union all by name select * from hours_between)
group by all
having
    charged_gpu_ns <> 0 or free_gpu_ns <> 0 or waiting_charged_gpu_ns <> 0 or waiting_free_gpu_ns <> 0
    or measured_gpu_ns <> 0 or used_gpu_ns <> 0
