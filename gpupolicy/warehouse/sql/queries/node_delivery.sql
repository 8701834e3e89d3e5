-- Grain: one row a node: its sums over the hours of the span.
-- Frames: capacity (hour, available_gpu_ns), claimant_node (account, user_name, path), lineage (path, ancestor: each
-- node's own path and all above it), claims (path, numerator, denominator of its entitlement).
-- Owed is min(entitlement, demand) hour by hour, as in domain/owed.py, which the tests hold against this. Amounts
-- named scaled are times the denominator: so they stay whole. Decimals, because a sum of hugeints is a double.
with placed as (
    select
        claimant_node.path,
        out_hourly.hour,
        sum(out_hourly.charged_gpu_ns) as charged,
        sum(out_hourly.charged_gpu_ns) + sum(out_hourly.waiting_charged_gpu_ns) as demand,
        sum(out_hourly.free_gpu_ns) as free
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

rolled_up as (
    select
        lineage.ancestor as path,
        placed.hour,
        cast(sum(cast(placed.charged as bigint)) as decimal(19, 0)) as charged,
        cast(sum(cast(placed.demand as bigint)) as decimal(19, 0)) as demand,
        sum(cast(placed.free as bigint)) as free
    from placed
    inner join lineage
        on placed.path = lineage.path
    group by lineage.ancestor, placed.hour
),

node_hours as (
    select
        claims.path,
        cast(claims.numerator as decimal(19, 0)) * cast(capacity.available_gpu_ns as decimal(19, 0)) as claim_scaled,
        cast(claims.denominator as decimal(19, 0)) * coalesce(rolled_up.demand, 0) as demand_scaled,
        cast(claims.denominator as decimal(19, 0)) * coalesce(rolled_up.charged, 0) as charged_scaled,
        coalesce(rolled_up.demand, 0) as demand,
        coalesce(rolled_up.charged, 0) as charged,
        coalesce(cast(rolled_up.free as decimal(19, 0)), 0) as free
    from claims
    cross join capacity
    left join rolled_up
        on claims.path = rolled_up.path
        and capacity.hour = rolled_up.hour
)

select
    path,
    cast(sum(claim_scaled) as varchar) as entitled_scaled,
    cast(sum(demand) as varchar) as demand_gpu_ns,
    cast(sum(least(claim_scaled, demand_scaled)) as varchar) as owed_scaled,
    cast(sum(charged) as varchar) as charged_gpu_ns,
    cast(sum(least(charged_scaled, claim_scaled, demand_scaled)) as varchar) as delivered_of_owed_scaled,
    cast(sum(free) as varchar) as free_gpu_ns
from node_hours
group by path
