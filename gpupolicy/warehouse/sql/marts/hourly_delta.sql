-- Grain: one row a claimant (cluster, GPU type, account, user) and hour whose GPU time changes by this load.
-- A sweep: each run raises a level at its start and lowers it at its end, so the cost follows events, not
-- hours. Levels are millionths of a GPU; times milliseconds make the sums whole GPU-nanoseconds.
-- Replaced runs count negative, so the delta is all that has to be added to what is there.
-- A sum of bigints is exact but a hugeint, and a sum of hugeints a double (DuckDB 1.5): hence the casts.
-- A series is a claimant and a kind in one number: 0 charged, 1 free, 2 waiting to be charged, 3 waiting free.
with signed_runs as (
    select *, 1 as sign
    from run_arriving
    union all by name
    select *, -1 as sign
    from run_leaving
),

claimants as (
    select *, row_number() over (order by cluster, gpu_type, account, user_name) as claimant
    from (select distinct cluster, gpu_type, account, user_name from signed_runs)
),

levels as (
    select
        claimants.claimant * 4 + case when runs.is_charged then 0 else 1 end as series,
        runs.sign * cast(cast(runs.gpus as decimal(28, 6)) * 1000000 as bigint) as level,
        runs.utilization_ratio,
        epoch_ms(runs.started_at) as started_ms,
        epoch_ms(least(coalesce(runs.ended_at, runs.observed_until), runs.observed_until)) as ended_ms,
        -- never eligible is no demand; a log without the moment of eligibility counts from submission
        epoch_ms(
            coalesce(runs.eligible_at, case when runs.started_at is not null then runs.submitted_at end)
        ) as waited_from_ms,
        epoch_ms(least(coalesce(runs.started_at, runs.ended_at, runs.observed_until), runs.observed_until)) as waited_to_ms
    from signed_runs as runs
    inner join claimants
        on runs.cluster = claimants.cluster
        and runs.gpu_type = claimants.gpu_type
        and runs.account = claimants.account
        and runs.user_name = claimants.user_name
    where runs.gpus > 0
),

stretches as (
    select
        series,
        level,
        case when utilization_ratio is not null then level else 0 end as measured,
        cast(round(level * coalesce(utilization_ratio, 0)) as bigint) as used,
        started_ms as from_ms,
        ended_ms as to_ms
    from levels
    where ended_ms > started_ms
    union all
    select series + 2, level, 0, 0, waited_from_ms, waited_to_ms
    from levels
    where waited_to_ms > waited_from_ms
),

events as (
    select series, from_ms as at_ms, level, measured, used
    from stretches
    union all
    select series, to_ms, -level, -measured, -used
    from stretches
),

by_hour as (
    select
        series,
        at_ms // 3600000 as hour_index,
        cast(sum(level) as bigint) as level,
        cast(sum(measured) as bigint) as measured,
        cast(sum(used) as bigint) as used,
        cast(sum(level * (3600000 - at_ms % 3600000)) as bigint) as level_part,
        cast(sum(measured * (3600000 - at_ms % 3600000)) as bigint) as measured_part,
        cast(sum(used * (3600000 - at_ms % 3600000)) as bigint) as used_part
    from events
    group by series, hour_index
),

running as (
    select
        *,
        cast(sum(level) over up_to_here as bigint) as level_after,
        cast(sum(measured) over up_to_here as bigint) as measured_after,
        cast(sum(used) over up_to_here as bigint) as used_after,
        lead(hour_index) over (partition by series order by hour_index) as next_index
    from by_hour
    window up_to_here as (partition by series order by hour_index rows unbounded preceding)
),

hours as (
    select
        series,
        hour_index,
        (level_after - level) * 3600000 + level_part as gpu_ns,
        (measured_after - measured) * 3600000 + measured_part as measured_gpu_ns,
        (used_after - used) * 3600000 + used_part as used_gpu_ns
    from running
    union all
    -- between two hours with events the level stays
    select
        series,
        unnest(range(hour_index + 1, next_index)),
        level_after * 3600000,
        measured_after * 3600000,
        used_after * 3600000
    from running
    where (level_after <> 0 or measured_after <> 0 or used_after <> 0) and next_index > hour_index + 1
),

by_claimant as (
    select
        series // 4 as claimant,
        hour_index,
        cast(sum(case when series % 4 = 0 then gpu_ns else 0 end) as bigint) as charged_gpu_ns,
        cast(sum(case when series % 4 = 1 then gpu_ns else 0 end) as bigint) as free_gpu_ns,
        cast(sum(case when series % 4 = 2 then gpu_ns else 0 end) as bigint) as waiting_charged_gpu_ns,
        cast(sum(case when series % 4 = 3 then gpu_ns else 0 end) as bigint) as waiting_free_gpu_ns,
        cast(sum(measured_gpu_ns) as bigint) as measured_gpu_ns,
        cast(sum(used_gpu_ns) as bigint) as used_gpu_ns
    from hours
    group by series // 4, hour_index
)

select
    claimants.cluster,
    claimants.gpu_type,
    claimants.account,
    claimants.user_name,
    make_timestamp_ms(by_claimant.hour_index * 3600000) as hour,
    by_claimant.* exclude (claimant, hour_index)
from by_claimant
inner join claimants
    on by_claimant.claimant = claimants.claimant
where
    charged_gpu_ns <> 0 or free_gpu_ns <> 0 or waiting_charged_gpu_ns <> 0 or waiting_free_gpu_ns <> 0
    or measured_gpu_ns <> 0 or used_gpu_ns <> 0
