-- +goose Up

-- How often somebody took the session over while the turn ran, since the turn last
-- got on by more than one step; and how many steps it had by then.
ALTER TABLE turns ADD COLUMN restarts      BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN restart_steps BIGINT NOT NULL DEFAULT 0;

-- The running turn that a turn of mode steer was submitted for.
ALTER TABLE turns ADD COLUMN expected_turn TEXT;
