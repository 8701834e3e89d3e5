-- Grain: one row a cluster that the store knows by its runs or by its hosts.
select cluster from core_host
union
select cluster from out_hourly
order by cluster
