-- Grain: one row a cluster, GPU type and hour of the span: GPU time installed and available.
-- Available is installed less the union of a host's outages (case ca-03); a draining host still counts,
-- until it is drained. A cluster known only by its size has the host '*', which gives way to named hosts. A host
-- stays as it is until it leaves or is listed anew. An outage without an end lasts as far as its cluster was
-- observed, not for ever. Levels are swept as in hourly_delta.
with listed as (
    select
        *,
        lead(valid_from) over (partition by cluster, host, gpu_type order by valid_from) as listed_anew_at
    from core_host
),

hosts as (
    select
        cluster,
        host,
        gpu_type,
        cast(cast(gpus as decimal(28, 6)) * 1000000 as bigint) as level,
        greatest(valid_from, cast($starts_at as timestamp)) as from_at,
        -- least passes over what is null
        least(valid_to, listed_anew_at, cast($ends_at as timestamp)) as to_at
    from listed
    where
        ($cluster is null or cluster = $cluster)
        and (host <> '*' or cluster not in (select cluster from core_host where host <> '*'))
),

observed as (
    select cluster, max(observed_until) as observed_until
    from core_run
    group by cluster
),

outages as (
    select
        outage.cluster,
        outage.host,
        outage.started_at,
        greatest(
            outage.started_at, coalesce(outage.ended_at, observed.observed_until, cast($ends_at as timestamp))
        ) as ended_at
    from core_outage as outage
    left join observed
        on outage.cluster = observed.cluster
    where outage.state <> 'draining'
),

outage_edges as (
    select cluster, host, started_at as edge_at, 1 as step
    from outages
    union all
    select cluster, host, ended_at as edge_at, -1 as step
    from outages
),

outage_depth as (
    select
        cluster,
        host,
        edge_at as from_at,
        lead(edge_at) over (partition by cluster, host order by edge_at) as to_at,
        sum(sum(step)) over (partition by cluster, host order by edge_at) as depth
    from outage_edges
    group by cluster, host, edge_at
),

away as (
    select
        hosts.cluster,
        hosts.gpu_type,
        hosts.level,
        greatest(hosts.from_at, outage_depth.from_at) as from_at,
        least(hosts.to_at, outage_depth.to_at) as to_at
    from hosts
    inner join outage_depth
        on hosts.cluster = outage_depth.cluster
        and hosts.host = outage_depth.host
    where outage_depth.depth > 0
),

stretches as (
    select cluster, gpu_type, level as installed, level as available, from_at, to_at
    from hosts
    where to_at > from_at
    union all
    select cluster, gpu_type, 0, -level, from_at, to_at
    from away
    where to_at > from_at
),

events as (
    select cluster, gpu_type, epoch_ms(from_at) as at_ms, installed, available
    from stretches
    union all
    select cluster, gpu_type, epoch_ms(to_at), -installed, -available
    from stretches
),

by_hour as (
    select
        cluster,
        gpu_type,
        at_ms // 3600000 as hour_index,
        cast(sum(installed) as bigint) as installed,
        cast(sum(available) as bigint) as available,
        cast(sum(installed * (3600000 - at_ms % 3600000)) as bigint) as installed_part,
        cast(sum(available * (3600000 - at_ms % 3600000)) as bigint) as available_part
    from events
    group by all
),

span_hours as (
    select unnest(range(
        epoch_ms(cast($starts_at as timestamp)) // 3600000, epoch_ms(cast($ends_at as timestamp)) // 3600000
    )) as hour_index
),

every_hour as (
    select kinds.cluster, kinds.gpu_type, span_hours.hour_index
    from (select distinct cluster, gpu_type from stretches) as kinds
    cross join span_hours
),

running as (
    select
        every_hour.*,
        coalesce(by_hour.installed, 0) as installed,
        coalesce(by_hour.available, 0) as available,
        coalesce(by_hour.installed_part, 0) as installed_part,
        coalesce(by_hour.available_part, 0) as available_part,
        cast(sum(coalesce(by_hour.installed, 0)) over up_to_here as bigint) as installed_after,
        cast(sum(coalesce(by_hour.available, 0)) over up_to_here as bigint) as available_after
    from every_hour
    left join by_hour
        on every_hour.cluster = by_hour.cluster
        and every_hour.gpu_type = by_hour.gpu_type
        and every_hour.hour_index = by_hour.hour_index
    window up_to_here as (
        partition by every_hour.cluster, every_hour.gpu_type
        order by every_hour.hour_index rows unbounded preceding
    )
)

select
    cluster,
    gpu_type,
    make_timestamp_ms(hour_index * 3600000) as hour,
    (installed_after - installed) * 3600000 + installed_part as installed_gpu_ns,
    (available_after - available) * 3600000 + available_part as available_gpu_ns
from running
order by cluster, gpu_type, hour
