-- Grain: one row a node with any demand in the span: its sums over the hours.
-- Frames: capacity (hour, available_gpu_ns), claimant_node (account, user_name, path), lineage (path, node: the
-- numbers of the path's own node and of all above it), claims (node, numerator, denominator of its entitlement).
-- Owed is min(entitlement, demand) hour by hour, as in domain/owed.py, which the tests hold against this. To stay
-- whole, hours in which the entitlement is the smaller give their available time, to be multiplied by it later.
with placed as (
    select
        claimant_node.path,
        out_hourly.hour,
        cast(sum(out_hourly.charged_gpu_ns) as bigint) as charged,
        cast(sum(out_hourly.charged_gpu_ns + out_hourly.waiting_charged_gpu_ns) as bigint) as demand,
        cast(sum(out_hourly.free_gpu_ns) as bigint) as free
    from out_hourly
    inner join claimant_node
        on out_hourly.account = claimant_node.account
        and out_hourly.user_name = claimant_node.user_name
    where
        out_hourly.hour >= $starts_at
        and out_hourly.hour < $ends_at
        and ($cluster is null or out_hourly.cluster = $cluster)
    group by claimant_node.path, out_hourly.hour
),

node_hours as (
    select
        lineage.node,
        placed.hour,
        cast(sum(placed.charged) as bigint) as charged,
        cast(sum(placed.demand) as bigint) as demand,
        cast(sum(placed.free) as bigint) as free
    from placed
    inner join lineage
        on placed.path = lineage.path
    group by lineage.node, placed.hour
),

compared as (
    select
        node_hours.*,
        capacity.available_gpu_ns as available,
        cast(claims.numerator as hugeint) * available < cast(claims.denominator as hugeint) * demand as wants_more,
        cast(claims.numerator as hugeint) * available < cast(claims.denominator as hugeint) * charged as got_more
    from node_hours
    inner join capacity
        on node_hours.hour = capacity.hour
    inner join claims
        on node_hours.node = claims.node
)

select
    node,
    sum(demand) as demand,
    sum(charged) as charged,
    sum(free) as free,
    sum(case when wants_more then available else 0 end) as owed_of_available,
    sum(case when wants_more then 0 else demand end) as owed_of_demand,
    -- demand is never less than what is charged, so within owed means within the entitlement
    sum(case when got_more then available else 0 end) as delivered_of_available,
    sum(case when got_more then 0 else charged end) as delivered_of_charged
from compared
group by node
