-- What happened: runs, hosts, outages, what was refused, and the hours that faces read.
-- Times are UTC without a zone. GPU time is whole GPU-nanoseconds (one GPU for 1 ns), so that
-- fractions of a GPU and milliseconds add up exactly.

create table batch (
    batch_id integer primary key,
    source varchar not null,
    path varchar not null,
    digest varchar not null,
    observed_until timestamp,
    rows_read bigint not null,
    accepted bigint not null,
    ignored bigint not null,
    rejected bigint not null,
    loaded_at timestamp not null
);

create table raw_rejected (
    batch_id integer not null,
    path varchar not null,
    digest varchar not null,
    line bigint not null,
    reason varchar not null,
    detail varchar,
    text varchar
);

create table core_run (
    cluster varchar not null,
    workload_id varchar not null,
    submitted_at timestamp not null,
    started_at timestamp,
    eligible_at timestamp,
    ended_at timestamp,
    observed_until timestamp not null,
    gpus decimal(18, 6) not null,
    gpu_type varchar not null,
    account varchar not null,
    user_name varchar not null,
    partition varchar not null,
    qos varchar not null,
    state varchar not null,
    walltime_s bigint,
    minimum_runtime_s bigint,
    is_resumable boolean,
    is_charged boolean not null,
    priority bigint,
    utilization_ratio double,
    hosts varchar not null,
    batch_id integer not null,
    line bigint not null
);

create table core_claimant (
    account varchar not null,
    user_name varchar not null
);

create table core_host (
    cluster varchar not null,
    host varchar not null,
    gpu_type varchar not null,
    gpus decimal(18, 6) not null,
    valid_from timestamp not null,
    valid_to timestamp,
    batch_id integer not null
);

create table core_outage (
    cluster varchar not null,
    host varchar not null,
    state varchar not null,
    started_at timestamp not null,
    ended_at timestamp,
    reason varchar not null,
    batch_id integer not null
);

create table out_hourly (
    cluster varchar not null,
    gpu_type varchar not null,
    account varchar not null,
    user_name varchar not null,
    hour timestamp not null,
    charged_gpu_ns bigint not null,
    free_gpu_ns bigint not null,
    waiting_charged_gpu_ns bigint not null,
    waiting_free_gpu_ns bigint not null,
    measured_gpu_ns bigint not null,
    used_gpu_ns bigint not null
);
