-- Grain: one row an account and user that any run names; those that this load brings.
insert into core_claimant
select distinct arriving.account, arriving.user_name
from run_arriving as arriving
where not exists (
    select 1
    from core_claimant as kept
    where kept.account = arriving.account and kept.user_name = arriving.user_name
)
