-- Grain: one row a cluster: what leaves got there within what they were owed.
-- Frames: capacity (hour, available_gpu_ns of all clusters looked at), claimant_node (account, user_name, path),
-- claims (path, numerator, denominator) of the leaves. A budget may be spent on any cluster, so a leaf's hour is
-- compared as a whole; an hour above its entitlement is divided among clusters by what was held there, to the
-- GPU-nanosecond below.
with held as (
    select
        claimant_node.path,
        out_hourly.hour,
        out_hourly.cluster,
        cast(sum(out_hourly.charged_gpu_ns) as bigint) as charged
    from out_hourly
    inner join claimant_node
        on out_hourly.account = claimant_node.account
        and out_hourly.user_name = claimant_node.user_name
    where
        out_hourly.hour >= $starts_at
        and out_hourly.hour < $ends_at
        and ($cluster is null or out_hourly.cluster = $cluster)
    group by claimant_node.path, out_hourly.hour, out_hourly.cluster
),

compared as (
    select
        held.cluster,
        held.charged,
        cast(sum(held.charged) over (partition by held.path, held.hour) as hugeint) as charged_anywhere,
        cast(claims.numerator as hugeint) * capacity.available_gpu_ns // cast(claims.denominator as hugeint) as entitled
    from held
    inner join claims
        on held.path = claims.path
    inner join capacity
        on held.hour = capacity.hour
)

select
    cluster,
    sum(cast(
        case when entitled < charged_anywhere then entitled * charged // charged_anywhere else charged end as bigint
    )) as served_gpu_ns
from compared
where charged > 0
group by cluster
