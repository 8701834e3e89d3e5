-- Grain: one row a host and the moment from which it has its GPUs.
select distinct on (cluster, host, lower(coalesce(gpu_type, '')), valid_from)
    cluster,
    host,
    lower(coalesce(gpu_type, '')) as gpu_type,
    cast(gpus as decimal(18, 6)) as gpus,
    cast(valid_from as timestamp) as valid_from,
    cast(valid_to as timestamp) as valid_to
from incoming_hosts
order by cluster, host, lower(coalesce(gpu_type, '')), valid_from, line desc
