// outcomes says what the outcome of a pass means.
export const outcomes: Record<string, string> = {
  staged: 'Records were found.',
  empty: 'There was nothing worth remembering.',
  provider_error: 'The model could not be asked. It is tried again later.',
  context_too_long: 'The part was too long for the model. A shorter one is tried.',
  tool_error: 'The tool that takes records failed. It is tried again later.',
  invalid: 'What the model submitted cannot be taken. It is tried again later.',
  no_submission: 'The model submitted nothing. It is tried again later.',
  turn_limit: 'The model did not come to an end. It is tried again later.',
  storage_error: 'The server cannot write to its disk. It is tried again later.',
  cancelled: 'The server was stopped. It is read after the next start.',
}

// starts says what came of the wish to read something now.
export const starts: Record<string, string> = {
  started: 'Reading begins.',
  already_running: 'It is being read already.',
  nothing_to_do: 'All of it has been read.',
  memory_off: 'Memory is off in this project.',
}
