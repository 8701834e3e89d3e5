-- Grain: one row a stretch of a host in one state; the file loaded last is right.
merge into core_outage as kept
using stg_outages as staged
on
    kept.cluster = staged.cluster
    and kept.host = staged.host
    and kept.state = staged.state
    and kept.started_at = staged.started_at
when matched and (kept.ended_at is distinct from staged.ended_at or kept.reason <> staged.reason) then update set
    ended_at = staged.ended_at,
    reason = staged.reason,
    batch_id = $batch_id
when not matched then insert (cluster, host, state, started_at, ended_at, reason, batch_id) values (
    staged.cluster, staged.host, staged.state, staged.started_at, staged.ended_at, staged.reason, $batch_id
)
