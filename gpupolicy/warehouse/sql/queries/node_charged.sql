-- Grain: one row a node that anything was charged to, itself or below, in the span.
-- Frames: claimant_node (account, user_name, path), lineage (path, node).
select
    lineage.node,
    sum(out_hourly.charged_gpu_ns) as charged_gpu_ns
from out_hourly
inner join claimant_node
    on out_hourly.account = claimant_node.account
    and out_hourly.user_name = claimant_node.user_name
inner join lineage
    on claimant_node.path = lineage.path
where
    out_hourly.hour >= $starts_at
    and out_hourly.hour < $ends_at
    and ($cluster is null or out_hourly.cluster = $cluster)
group by lineage.node
