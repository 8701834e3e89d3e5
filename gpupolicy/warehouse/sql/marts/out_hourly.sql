-- Grain: one row a claimant and UTC hour. Adds what a load changes to what is there.
merge into out_hourly as kept
using hourly_delta as delta
on
    kept.hour = delta.hour
    and kept.cluster = delta.cluster
    and kept.gpu_type = delta.gpu_type
    and kept.account = delta.account
    and kept.user_name = delta.user_name
when matched then update set
    charged_gpu_ns = kept.charged_gpu_ns + delta.charged_gpu_ns,
    free_gpu_ns = kept.free_gpu_ns + delta.free_gpu_ns,
    waiting_charged_gpu_ns = kept.waiting_charged_gpu_ns + delta.waiting_charged_gpu_ns,
    waiting_free_gpu_ns = kept.waiting_free_gpu_ns + delta.waiting_free_gpu_ns,
    measured_gpu_ns = kept.measured_gpu_ns + delta.measured_gpu_ns,
    used_gpu_ns = kept.used_gpu_ns + delta.used_gpu_ns
when not matched then insert (
    cluster, gpu_type, account, user_name, hour, charged_gpu_ns, free_gpu_ns, waiting_charged_gpu_ns,
    waiting_free_gpu_ns, measured_gpu_ns, used_gpu_ns
) values (
    delta.cluster, delta.gpu_type, delta.account, delta.user_name, delta.hour, delta.charged_gpu_ns,
    delta.free_gpu_ns, delta.waiting_charged_gpu_ns, delta.waiting_free_gpu_ns, delta.measured_gpu_ns,
    delta.used_gpu_ns
)
