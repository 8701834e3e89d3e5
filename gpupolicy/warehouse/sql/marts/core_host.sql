-- Grain: one row a host and the moment from which it has its GPUs; the file loaded last is right.
merge into core_host as kept
using stg_hosts as staged
on
    kept.cluster = staged.cluster
    and kept.host = staged.host
    and kept.gpu_type = staged.gpu_type
    and kept.valid_from = staged.valid_from
when matched and (kept.gpus <> staged.gpus or kept.valid_to is distinct from staged.valid_to) then update set
    gpus = staged.gpus,
    valid_to = staged.valid_to,
    batch_id = $batch_id
when not matched then insert (cluster, host, gpu_type, gpus, valid_from, valid_to, batch_id) values (
    staged.cluster, staged.host, staged.gpu_type, staged.gpus, staged.valid_from, staged.valid_to, $batch_id
)
