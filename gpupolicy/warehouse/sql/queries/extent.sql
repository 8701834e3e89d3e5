-- Grain: one row a cluster with runs: its first hour with usage or demand, and how far it was observed.
-- has_left: every host it had was gone by then, so it holds nobody up.
with runs as (
    select cluster, max(observed_until) as observed_until
    from core_run
    where $cluster is null or cluster = $cluster
    group by cluster
),

first_hours as (
    select cluster, min(hour) as first_hour
    from out_hourly
    group by cluster
),

gone as (
    select cluster, max(coalesce(valid_to, timestamp 'infinity')) as last_host_left_at
    from core_host
    group by cluster
)

select
    runs.cluster,
    first_hours.first_hour,
    runs.observed_until,
    coalesce(gone.last_host_left_at <= runs.observed_until, false) as has_left
from runs
left join first_hours
    on runs.cluster = first_hours.cluster
left join gone
    on runs.cluster = gone.cluster
order by runs.cluster
