-- Grain: one row a stored run that an arriving record replaces: the same key, or a wait that became a start.
select distinct stored.*
from core_run as stored
inner join run_arriving as arriving
    on stored.cluster = arriving.cluster
    and stored.workload_id = arriving.workload_id
    and stored.submitted_at = arriving.submitted_at
where
    stored.started_at is not distinct from arriving.started_at
    or stored.started_at is null
