-- Grain: one row a claimant: an account and user as usage logs name them.
select distinct account, user_name
from out_hourly
order by account, user_name
