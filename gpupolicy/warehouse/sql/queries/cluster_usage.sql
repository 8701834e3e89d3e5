-- Grain: one row a cluster with usage or demand in the span.
select
    cluster,
    sum(charged_gpu_ns) + sum(free_gpu_ns) as occupied_gpu_ns,
    sum(charged_gpu_ns) + sum(free_gpu_ns) + sum(waiting_charged_gpu_ns) + sum(waiting_free_gpu_ns) as demand_gpu_ns,
    sum(measured_gpu_ns) as measured_gpu_ns,
    sum(used_gpu_ns) as used_gpu_ns
from out_hourly
where
    hour >= $starts_at
    and hour < $ends_at
    and ($cluster is null or cluster = $cluster)
group by cluster
order by cluster
