-- Grain: one row a run. What arrives, after what it replaces has left.
insert into core_run by name
select * exclude (is_new, is_confirmed)
from run_arriving
