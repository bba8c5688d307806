import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

export const helpOpen = signal(false)

const keys: [string, string][] = [
  ['n', 'New session'],
  ['/', 'Search the sessions'],
  ['j · k', 'Next, previous session'],
  ['i', 'Write a message'],
  ['Enter', 'Send it'],
  ['Shift + Enter', 'New line'],
  ['.', 'Stop the running turn'],
  ['r', 'Rename the session'],
  ['g', 'Go to the end of the conversation'],
  ['m', 'Memory'],
  ['l', 'Limits'],
  ['Escape', 'Close, or leave a field'],
  ['?', 'This list'],
]

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  const shown = helpOpen.value
  useEffect(() => {
    if (shown) dialog.current?.showModal()
    else dialog.current?.close()
  }, [shown])
  const close = () => { helpOpen.value = false }
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close} onClick={(e) => { if (e.target === dialog.current) close() }}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {keys.map(([key, does]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>)}
      </dl>
      <p class="hint">The API behind this page is <a href="/docs" target="_blank" rel="noopener">described here</a>.</p>
      <button type="button" onClick={close}>Close</button>
    </dialog>
  )
}
