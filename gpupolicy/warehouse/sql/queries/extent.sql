-- Grain: one row. What the store holds, in time: the first hour with usage or demand, and how far it was observed.
select
    (select min(hour) from out_hourly where $cluster is null or cluster = $cluster) as first_hour,
    (select max(observed_until) from core_run where $cluster is null or cluster = $cluster) as observed_until
