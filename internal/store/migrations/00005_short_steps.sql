-- +goose Up

-- What a step cost is four numbers: input, cached input and output tokens, and the
-- bytes of its request. From now on log.at may be 0 too: the time is that which the
-- turn has for the event (queries.sql).
UPDATE log SET data = json_array(
    coalesce(data ->> '$.usage.input_tokens', 0), coalesce(data ->> '$.usage.cached_input_tokens', 0),
    coalesce(data ->> '$.usage.output_tokens', 0), coalesce(data ->> '$.request_bytes', 0))
WHERE code = 9;
