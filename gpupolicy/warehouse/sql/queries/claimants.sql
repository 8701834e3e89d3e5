-- Grain: one row a claimant: an account and user as usage logs name them.
select account, user_name
from core_claimant
order by account, user_name
