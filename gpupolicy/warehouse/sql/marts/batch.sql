-- Grain: one row a file that changed the store.
insert into batch (
    batch_id, source, path, digest, observed_until, rows_read, accepted, ignored, rejected, loaded_at
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
