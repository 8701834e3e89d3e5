-- Grain: one row an hour of the span, for one node: what it wanted and held, itself or below.
-- Frames: capacity (hour, available_gpu_ns), claimant_node (account, user_name, path) of the node's claimants.
with usage as (
    select
        out_hourly.hour,
        sum(out_hourly.charged_gpu_ns) as charged_gpu_ns,
        sum(out_hourly.waiting_charged_gpu_ns) as waiting_gpu_ns,
        sum(out_hourly.free_gpu_ns) as free_gpu_ns
    from out_hourly
    inner join claimant_node
        on out_hourly.account = claimant_node.account
        and out_hourly.user_name = claimant_node.user_name
    where
        out_hourly.hour >= $starts_at
        and out_hourly.hour < $ends_at
        and ($cluster is null or out_hourly.cluster = $cluster)
    group by out_hourly.hour
)

select
    capacity.hour,
    capacity.available_gpu_ns,
    cast(coalesce(usage.charged_gpu_ns, 0) + coalesce(usage.waiting_gpu_ns, 0) as bigint) as demand_gpu_ns,
    cast(coalesce(usage.charged_gpu_ns, 0) as bigint) as charged_gpu_ns,
    cast(coalesce(usage.free_gpu_ns, 0) as bigint) as free_gpu_ns
from capacity
left join usage
    on capacity.hour = usage.hour
order by capacity.hour
