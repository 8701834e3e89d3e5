-- Grain: one row a line that was not accepted, with its reason; once, however often the file is loaded.
insert into raw_rejected
select $batch_id, $path, $digest, incoming.line, incoming.reason, incoming.detail, incoming.text
from incoming_rejected as incoming
where not exists (
    select 1
    from raw_rejected as kept
    where kept.digest = $digest and kept.line = incoming.line and kept.reason = incoming.reason
)
