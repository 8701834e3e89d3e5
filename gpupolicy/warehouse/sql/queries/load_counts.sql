-- Grain: one row. What the runs just staged change in the store.
select
    count(*) filter (where is_new) as new,
    count(*) filter (where not is_new and not is_confirmed) as changed,
    count(*) as arriving,
    (select count(*) from stg_runs) as staged
from run_arriving
