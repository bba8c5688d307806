import { useEffect } from 'preact/hooks'
import { key } from '../app/server'
import { spoken } from './announce'
import { Composer } from './Composer'
import { Head } from './Head'
import { close, follow, gone, open } from './open'
import { Queue } from './Queue'
import { Timeline } from './Timeline'

// Chat is one session.
export function Chat({ id }: { id: string }) {
  useEffect(() => {
    void follow(id)
    return close
  }, [id, key.value])
  if (gone.value) return <Gone />
  const here = open.value?.id === id ? open.value : undefined
  return (
    <section class="chat" aria-label="Conversation">
      <Head id={id} here={here} />
      {here ? <Timeline here={here} /> : <div class="timeline loading" aria-busy="true" />}
      {here && <Queue here={here} />}
      <Composer id={id} here={here} />
      <p class="off-screen" role="log" aria-live="polite">{spoken.value}</p>
    </section>
  )
}

function Gone() {
  return (
    <section class="page">
      <h1>This session is not there</h1>
      <p>It was deleted, or the address is mistyped.</p>
      <p><a class="button" href="#/">New session</a></p>
    </section>
  )
}
