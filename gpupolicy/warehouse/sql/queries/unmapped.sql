-- Grain: one row a claimant that the tree has no place for, with what it held in the span.
-- Frames: claimant_node (account, user_name, path).
select
    out_hourly.account,
    out_hourly.user_name,
    sum(out_hourly.charged_gpu_ns) + sum(out_hourly.free_gpu_ns) as held_gpu_ns
from out_hourly
left join claimant_node
    on out_hourly.account = claimant_node.account
    and out_hourly.user_name = claimant_node.user_name
where
    claimant_node.path is null
    and out_hourly.hour >= $starts_at
    and out_hourly.hour < $ends_at
    and ($cluster is null or out_hourly.cluster = $cluster)
group by out_hourly.account, out_hourly.user_name
having held_gpu_ns > 0
order by held_gpu_ns desc, out_hourly.account, out_hourly.user_name
