// plain says what a code of a turn or of a refused request means, and what to do.
const plain: Record<string, string> = {
  // how turns end
  provider_error: 'The model could not be asked. Check its address and key in the manifest, then try again.',
  empty_response: 'The model said nothing, three times in a row. Try again, or say it in other words.',
  step_limit: 'The turn needed more steps than allowed. Ask for less at once, or raise worker.max_steps.',
  request_too_large: 'The request does not fit into the model, even when shortened. Start a new session, or use a model with a larger window.',
  input_too_large: 'This message is too long for the model. Send less of it.',
  internal: 'The server made a mistake. Its log says more; try again.',
  storage: 'The server cannot write to its disk. Make room, then try again.',
  cancelled: 'Stopped.',
  session_deleted: 'The session was deleted.',
  server_stopping: 'The server was stopped while this ran. Try again.',
  server_killed: 'The server died while this ran. Try again.',
  // why requests are refused
  network: 'The server cannot be reached. It will work again when the connection is back.',
  unauthorized: 'The server wants a key.',
  busy: 'A turn is running in this session. Wait for it, or stop it.',
  queue_full: 'Too many messages wait in this session. Wait until some have run.',
  turn_not_running: 'That turn has just ended. Send it as a new message.',
  not_found: 'It is not there any more.',
  output_gone: 'The whole output was kept, but has been removed since to make room.',
  stopping: 'The server is being stopped.',
  not_ready: 'The server is just starting. Try again in a moment.',
  cross_origin: 'The server does not allow this page. Open it under the server’s own address.',
  misdirected_host: 'The server does not know itself under this name. Add it to server.allowed_hosts.',
  unknown_project: 'The manifest has no such project any more.',
}

// inWords is a sentence for a person; of an unknown code, what the server says.
export function inWords(code: string, detail = ''): string {
  return plain[code] ?? (detail || `It did not work (${code}).`)
}

const numbers = new Intl.NumberFormat('en-GB')

// grouped writes a number with commas between thousands.
export const grouped = (n: number): string => numbers.format(n)

// bytesInWords is a size to read in passing.
export function bytesInWords(n: number): string {
  if (n < 1000) return `${n} bytes`
  if (n < 1_000_000) return `${(n / 1000).toFixed(n < 10_000 ? 1 : 0)} KB`
  return `${(n / 1_000_000).toFixed(1)} MB`
}

// spanInWords is a time span in milliseconds, to read in passing.
export function spanInWords(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`
}

// ago is how long ago a time was.
export function ago(time: string, now = Date.now()): string {
  const minutes = Math.floor((now - Date.parse(time)) / 60_000)
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} min`
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`
  const days = Math.floor(minutes / 1440)
  return days < 7 ? `${days} d` : new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
}
