-- Grain: one row a label and class of work, and one a label for all its classes (class null).
-- Frames: claimant_node (account, user_name, path), labels (path, label: what each node's waits are shown under).
-- A wait is start - eligible, of workloads that became eligible in the span; of a workload's runs the first counts, those
-- after a requeue are counted apart. Small negative waits, from clocks that disagree, are 0.
-- Quantiles of the started interpolate linearly. Those that still wait have waited at least so long: the censored
-- quantiles take them in by the product-limit estimate (Kaplan and Meier 1958), null where so few have started that
-- the estimate does not reach so far. A log without minimum runtimes is classed by how long its runs were.
with runs as (
    select
        *,
        coalesce(eligible_at, case when started_at is not null then submitted_at end) as waits_from,
        row_number() over (
            partition by cluster, workload_id order by submitted_at, started_at nulls last
        ) = 1 as is_first,
        coalesce(minimum_runtime_s, date_diff('second', started_at, coalesce(ended_at, observed_until))) as protected_s
    from core_run
    -- from the beginning: a requeue in the span must not pass for a first start
    where
        submitted_at < $ends_at
        and ($cluster is null or cluster = $cluster)
        and gpus > 0
),

waits as (
    select
        coalesce(labels.label, '(not in the tree)') as label,
        case
            when not runs.is_charged then 'free'
            when runs.partition = $interactive_partition then 'interactive'
            when runs.gpus <= $debug_max_gpus and runs.protected_s <= $debug_max_s then 'debug'
            when runs.gpus <= $small_max_gpus then 'small'
            else 'large'
        end as class,
        runs.is_first,
        runs.started_at is not null as has_started,
        -- cancelled while waiting, or waiting still: a wait of at least so long
        greatest(
            0, epoch_ms(coalesce(runs.started_at, runs.ended_at, runs.observed_until)) - epoch_ms(runs.waits_from)
        ) / 1000 as wait_s
    from runs
    left join claimant_node
        on runs.account = claimant_node.account
        and runs.user_name = claimant_node.user_name
    left join labels
        on claimant_node.path = labels.path
    where
        runs.waits_from >= $starts_at
        and runs.waits_from < $ends_at
        and (claimant_node.path is null or labels.label is not null)
),

by_class as (
    select label, class, is_first, has_started, wait_s
    from waits
    union all
    select label, null, is_first, has_started, wait_s
    from waits
),

steps as (
    select
        label,
        class,
        wait_s,
        count(*) filter (where has_started) as started,
        sum(count(*)) over (
            partition by label, class order by wait_s desc rows unbounded preceding
        ) as at_risk
    from by_class
    where is_first
    group by label, class, wait_s
),

surviving as (
    select
        label,
        class,
        wait_s,
        started,
        exp(sum(ln(case when started = at_risk then 1e-300 else 1 - started / at_risk end)) over (
            partition by label, class order by wait_s rows unbounded preceding
        )) as still_waiting
    from steps
),

censored as (
    select
        label,
        class,
        min(wait_s) filter (where started > 0 and still_waiting <= 0.5 + 1e-12) as p50_censored_s,
        min(wait_s) filter (where started > 0 and still_waiting <= 0.1 + 1e-12) as p90_censored_s,
        min(wait_s) filter (where started > 0 and still_waiting <= 0.01 + 1e-12) as p99_censored_s
    from surviving
    group by label, class
),

summed as (
    select
        label,
        class,
        count(*) filter (where is_first and has_started) as started,
        count(*) filter (where is_first and not has_started) as never_started,
        count(*) filter (where not is_first and has_started) as restarted,
        quantile_cont(wait_s, 0.5) filter (where is_first and has_started) as p50_s,
        quantile_cont(wait_s, 0.9) filter (where is_first and has_started) as p90_s,
        quantile_cont(wait_s, 0.99) filter (where is_first and has_started) as p99_s,
        max(wait_s) filter (where is_first and has_started) as longest_s,
        max(wait_s) filter (where is_first and not has_started) as longest_unstarted_s,
        quantile_cont(wait_s, 0.5) filter (where not is_first and has_started) as requeue_p50_s,
        quantile_cont(wait_s, 0.9) filter (where not is_first and has_started) as requeue_p90_s
    from by_class
    group by label, class
)

select
    summed.*,
    censored.p50_censored_s,
    censored.p90_censored_s,
    censored.p99_censored_s
from summed
left join censored
    on summed.label = censored.label
    and summed.class is not distinct from censored.class
order by summed.label, summed.class nulls last
