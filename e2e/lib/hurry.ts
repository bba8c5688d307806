/** Makes waits of less than a second none at all, until what it returns is called: a client waits between its tries. */
export function hurry(): () => void {
  const patient = globalThis.setTimeout;
  globalThis.setTimeout = ((run: () => void, wait = 0, ...rest: []) => patient(run, wait < 1000 ? 0 : wait, ...rest)) as typeof setTimeout;
  return () => void (globalThis.setTimeout = patient);
}
