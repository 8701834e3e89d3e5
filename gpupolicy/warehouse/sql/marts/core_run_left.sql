-- Takes out the runs that arriving records replace.
delete from core_run
using run_leaving as leaving
where
    core_run.cluster = leaving.cluster
    and core_run.workload_id = leaving.workload_id
    and core_run.submitted_at = leaving.submitted_at
    and core_run.started_at is not distinct from leaving.started_at
