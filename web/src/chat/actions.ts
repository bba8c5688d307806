import type { Mode } from 'loadline'
import { go, sessionAddress } from '../app/route'
import { attempt, server } from '../app/server'
import { create, rename } from '../sessions/list'
import { open } from './open'

const titleLength = 60

let writing = false // whether who writes goes on writing in the session that opens next

// takeFocus tells once whether the field of a session that opens should have the focus.
export function takeFocus(): boolean {
  const taken = writing
  writing = false
  return taken
}

// begin makes a session and sends its first message.
export async function begin(input: string, project?: string): Promise<boolean> {
  const session = await attempt(() => create(project, titleFrom(input)))
  if (!session) return false
  const turn = await attempt(() => server.send(session.id, input))
  writing = true
  go(sessionAddress(session.id))
  return turn !== undefined
}

// say sends a message to a session.
export async function say(id: string, input: string, mode?: Mode): Promise<boolean> {
  const here = open.value?.id === id ? open.value : undefined
  const running = here?.conversation.running
  const turn = await attempt(() => server.send(id, input, { mode, ...(mode === 'steer' && running && { expectedTurn: running.id }) }))
  document.querySelector('.timeline')?.dispatchEvent(new Event('to-end'))
  if (turn && here && !here.conversation.session.title && here.conversation.turns.size === 0) void rename(id, titleFrom(input))
  return turn !== undefined
}

export async function stopTurn(turnID?: string) {
  const here = open.value
  const turn = turnID ?? here?.conversation.running?.id
  if (here && turn) {
    await attempt(() => server.post('/v1/sessions/{session_id}/turns/{turn_id}/cancel', { params: { session_id: here.id, turn_id: turn } }))
  }
}

function titleFrom(input: string): string {
  const line = input.trim().split('\n')[0]!.replace(/\s+/g, ' ')
  const runes = [...line]
  return runes.length <= titleLength ? line : `${runes.slice(0, titleLength - 1).join('')}…`
}
