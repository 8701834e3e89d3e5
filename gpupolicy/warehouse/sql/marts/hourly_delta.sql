-- Grain: one row a claimant (cluster, GPU type, account, user) and hour whose GPU time changes by this load.
-- A sweep: each run raises a level at its start and lowers it at its end, so the cost follows events, not
-- hours. Levels are millionths of a GPU; times milliseconds make the sums whole GPU-nanoseconds.
-- Replaced runs count negative, so the delta is all that has to be added to what is there.
-- A sum of bigints is exact but a hugeint, and a sum of hugeints a double (DuckDB 1.5): hence the casts.
-- A series is a claimant and a kind in one number. Kinds: 0 charged, 1 free, 2 waiting to be charged, 3 waiting
-- free, 4 held with a known utilization, 5 of that used.
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
        claimants.claimant * 6 as series,
        case when runs.is_charged then 0 else 1 end as kind,
        runs.sign * cast(cast(runs.gpus as decimal(28, 6)) * 1000000 as bigint) as level,
        runs.utilization_ratio,
        epoch_ms(runs.started_at) as started_ms,
        epoch_ms(least(coalesce(runs.ended_at, runs.observed_until), runs.observed_until)) as ended_ms,
        -- never eligible is no demand; a log without the moment of eligibility counts from submission
        epoch_ms(
            coalesce(runs.eligible_at, case when runs.started_at is not null then runs.submitted_at end)
        ) as waited_from_ms,
        epoch_ms(
            least(coalesce(runs.started_at, runs.ended_at, runs.observed_until), runs.observed_until)
        ) as waited_to_ms
    from signed_runs as runs
    inner join claimants
        on runs.cluster = claimants.cluster
        and runs.gpu_type = claimants.gpu_type
        and runs.account = claimants.account
        and runs.user_name = claimants.user_name
    where runs.gpus > 0
),

stretches as (
    select series + kind as series, level, started_ms as from_ms, ended_ms as to_ms
    from levels
    where ended_ms > started_ms
    union all
    select series + kind + 2, level, waited_from_ms, waited_to_ms
    from levels
    where waited_to_ms > waited_from_ms
    union all
    select series + 4, level, started_ms, ended_ms
    from levels
    where ended_ms > started_ms and utilization_ratio is not null
    union all
    select series + 5, cast(round(level * utilization_ratio) as bigint), started_ms, ended_ms
    from levels
    where ended_ms > started_ms and utilization_ratio > 0
),

events as (
    select series, from_ms as at_ms, level
    from stretches
    union all
    select series, to_ms, -level
    from stretches
),

by_hour as (
    select
        series,
        at_ms // 3600000 as hour_index,
        cast(sum(level) as bigint) as level,
        cast(sum(level * (3600000 - at_ms % 3600000)) as bigint) as part
    from events
    group by series, hour_index
),

running as (
    select
        *,
        cast(sum(level) over up_to_here as bigint) as level_after,
        lead(hour_index) over (partition by series order by hour_index) as next_index
    from by_hour
    window up_to_here as (partition by series order by hour_index rows unbounded preceding)
),

hours as (
    select series, hour_index, (level_after - level) * 3600000 + part as gpu_ns
    from running
    union all
    -- between two hours with events the level stays
    select series, unnest(range(hour_index + 1, next_index)), level_after * 3600000
    from running
    where level_after <> 0 and next_index > hour_index + 1
),

by_claimant as (
    -- one row a series and hour, so the largest is the only one; unlike a sum it stays a bigint
    select
        series // 6 as claimant,
        hour_index,
        coalesce(max(case when series % 6 = 0 then gpu_ns end), 0) as charged_gpu_ns,
        coalesce(max(case when series % 6 = 1 then gpu_ns end), 0) as free_gpu_ns,
        coalesce(max(case when series % 6 = 2 then gpu_ns end), 0) as waiting_charged_gpu_ns,
        coalesce(max(case when series % 6 = 3 then gpu_ns end), 0) as waiting_free_gpu_ns,
        coalesce(max(case when series % 6 = 4 then gpu_ns end), 0) as measured_gpu_ns,
        coalesce(max(case when series % 6 = 5 then gpu_ns end), 0) as used_gpu_ns
    from hours
    where gpu_ns <> 0
    group by series // 6, hour_index
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
