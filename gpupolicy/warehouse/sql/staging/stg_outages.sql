-- Grain: one row a stretch of a host in one state.
select distinct on (cluster, host, state, started_at)
    cluster,
    host,
    state,
    cast(started_at as timestamp) as started_at,
    cast(ended_at as timestamp) as ended_at,
    coalesce(reason, '') as reason
from incoming_outages
order by cluster, host, state, started_at, line desc
